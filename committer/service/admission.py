"""Which waiting requests may land on this state of the table, and what becomes of the others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from uuid import UUID

from committer.errors import (
    FrazilError,
    InvalidRequestError,
    InvariantError,
    NotFoundError,
)
from committer.ledger_entry import Landed
from committer.plan.check import CheckBasis, CheckedRequest, Checker, NeedsManifests
from committer.plan.ledger import (
    Duplicate,
    Forgotten,
    LedgerAnswer,
    NotLanded,
    Refused,
    compare,
)
from committer.plan.state import TableState
from committer.ports import Storage
from committer.reason import Reason
from committer.request import SealedRequest
from committer.service.evidence import EvidenceReader
from committer.service.log import log
from committer.service.pending import Pending
from committer.service.signatures import Signatures
from committer.service.steps import off_loop_if_large
from committer.storage.inbox import Inbox, Quarantine, QuarantineRecord

LOOKUPS_AT_ONCE = 32
LISTED_MIN = 64


class _Place(Enum):
    """Where a request was found. `JUDGED`: in quarantine, and not gone from the inbox yet."""

    INBOX = auto()
    JUDGED = auto()
    NOWHERE = auto()


@dataclass(frozen=True, slots=True)
class Quarantining:
    """A request that cannot land, with its reason."""

    pending: Pending
    reason: Reason
    message: str

    def record(self, now_ms: int) -> QuarantineRecord:
        return QuarantineRecord(
            key=self.pending.key,
            reason=self.reason.value,
            message=self.message,
            quarantined_at_ms=now_ms,
            table=str(self.pending.sealed.request.identifier),
        )


@dataclass(frozen=True, slots=True)
class AlreadyLanded:
    """A request whose epoch has landed."""

    pending: Pending
    landed: Landed
    warning: str | None


@dataclass(slots=True)
class Admitted:
    """The answer for each request looked at. `gone`: it has left the inbox, so it ended before.

    `judged`: in quarantine, and in the inbox still. `suspects` may land as far as the table can
    tell, but an attempt with each alone has failed.
    `failed`: what is needed for an answer could not be read; nothing follows from that.
    """

    candidates: list[CheckedRequest] = field(default_factory=list)
    duplicates: list[AlreadyLanded] = field(default_factory=list)
    gone: list[Pending] = field(default_factory=list)
    judged: list[Pending] = field(default_factory=list)
    refused: list[Quarantining] = field(default_factory=list)
    suspects: list[Quarantining] = field(default_factory=list)
    failed: list[tuple[Pending, FrazilError]] = field(default_factory=list)

    @property
    def has_verdicts(self) -> bool:
        """Whether some requests would end here, which only fresh metadata may decide."""
        return bool(self.duplicates or self.refused or self.suspects)


class Admission:
    """Asks the ledger and checks requests; remembers what was checked against which basis."""

    def __init__(
        self,
        catalog_name: str,
        storage: Storage,
        inbox: Inbox,
        quarantine: Quarantine,
        signatures: Signatures,
        everybody: Callable[[], Iterable[Pending]],
    ) -> None:
        """`everybody` who waits for this table, also those who are not looked at yet."""
        self._catalog_name = catalog_name
        self._storage = storage
        self._inbox = inbox
        self._quarantine = quarantine
        self._everybody = everybody
        self._signatures = signatures
        self.evidence = EvidenceReader(storage)
        self._checker: Checker | None = None

    @property
    def basis(self) -> CheckBasis:
        """What the last checks depended on."""
        if self._checker is None:
            raise InvariantError("nothing was admitted yet")
        return self._checker.basis

    async def admit(
        self, waiting: Sequence[Pending], state: TableState, generation: int
    ) -> Admitted:
        """Look at the requests in order. `generation` counts the loads of the state."""
        checker = self._checker_of(state)
        admitted = Admitted()
        landing: list[Pending] = []
        unproven: list[tuple[Pending, NotLanded | Forgotten]] = []
        for pending in waiting:
            answer = _answer(pending, state, checker)
            match answer:
                case Duplicate(landed, warning):
                    admitted.duplicates.append(AlreadyLanded(pending, landed, warning))
                case Refused(reason, message):
                    admitted.refused.append(Quarantining(pending, reason, message))
                case _ if not await self._is_authentic(pending, state, admitted):
                    pass
                case NotLanded(known) if (
                    known and not pending.is_shared
                ) or pending.present_in == generation:
                    landing.append(pending)
                case NotLanded() | Forgotten():
                    unproven.append((pending, answer))
        landing.extend(await self._look_up(unproven, state, generation, admitted))
        await self._check(landing, checker, admitted)
        return admitted

    def _checker_of(self, state: TableState) -> Checker:
        basis = CheckBasis.of(self._catalog_name, state.metadata)
        if self._checker is None or self._checker.basis != basis:
            self._checker = Checker(basis, state.metadata.current_schema)
        return self._checker

    async def _is_authentic(self, pending: Pending, state: TableState, admitted: Admitted) -> bool:
        """Whether it may land as far as its signature goes; if not, `admitted` says why."""
        try:
            await self._signatures.check(pending, state.metadata.properties)
        except InvalidRequestError as error:
            admitted.refused.append(Quarantining(pending, Reason(error.reason), str(error)))
        except NotFoundError:
            admitted.gone.append(pending)
        except FrazilError as error:
            admitted.failed.append((pending, error))
        else:
            return True
        return False

    async def _look_up(
        self,
        unproven: Sequence[tuple[Pending, NotLanded | Forgotten]],
        state: TableState,
        generation: int,
        admitted: Admitted,
    ) -> list[Pending]:
        """Ask the inbox where the ledger cannot answer; return those that may land.

        Only an inbox object seen after the base was loaded proves that the request has not landed
        and been forgotten: entries of one-shot producers are dropped once their object is gone.
        """
        found = await self._find_all(
            [pending for pending, _ in unproven], state.metadata.require_uuid(), generation
        )
        landing = []
        for (pending, answer), place in zip(unproven, found, strict=True):
            if isinstance(place, FrazilError):
                admitted.failed.append((pending, place))
            elif place is _Place.NOWHERE:
                admitted.gone.append(pending)
            elif place is _Place.JUDGED:
                admitted.judged.append(pending)
            elif isinstance(answer, NotLanded):
                pending.present_in = generation
                landing.append(pending)
            else:
                await self._prove(pending, state, admitted)
        return landing

    async def _prove(self, pending: Pending, state: TableState, admitted: Admitted) -> None:
        """What the ledger has forgotten a manifest list may still prove."""
        request = pending.sealed.request
        try:
            landed = await self.evidence.find(state, request)
        except FrazilError as error:
            admitted.failed.append((pending, error))
            return
        match compare(landed, request) if landed else None:
            case Duplicate(found, warning):
                admitted.duplicates.append(AlreadyLanded(pending, found, warning))
            case Refused(reason, message):
                admitted.refused.append(Quarantining(pending, reason, message))
            case None:
                admitted.refused.append(_unproven(pending))

    async def _find_all(
        self, waiting: Sequence[Pending], table_uuid: UUID, generation: int
    ) -> Sequence[_Place | FrazilError]:
        if len(waiting) >= LISTED_MIN:
            return await self._list_all(waiting, table_uuid, generation)
        limit = asyncio.Semaphore(LOOKUPS_AT_ONCE)

        async def find(pending: Pending) -> _Place | FrazilError:
            async with limit:
                try:
                    return await self._find(pending)
                except FrazilError as error:
                    return error

        return await asyncio.gather(*(find(pending) for pending in waiting))

    async def _find(self, pending: Pending) -> _Place:
        """Only of what others were handed too may one have begun to put it into quarantine, and not
        ended.
        """
        if not await self._inbox.contains(pending.key):
            return _Place.NOWHERE
        if pending.is_shared and await self._quarantine.contains(pending.key):
            return _Place.JUDGED
        return _Place.INBOX

    async def _list_all(
        self, waiting: Sequence[Pending], table_uuid: UUID, generation: int
    ) -> Sequence[_Place | FrazilError]:
        """One listing tells of a thousand requests, a look at each only of one; and it tells of all
        that wait, so that a backlog is listed once and not for each of its batches.
        """
        others = list(self._everybody())
        try:
            listed = {found.key async for found in self._inbox.list(table_uuid)}
            judged = {found.key async for found in self._quarantine.list(table_uuid)}
        except FrazilError as error:
            return [error] * len(waiting)
        for pending in others:
            if pending.key in listed and pending.key not in judged:
                pending.present_in = generation
        return [_place(pending.key, listed, judged) for pending in waiting]

    async def _check(
        self, landing: Sequence[Pending], checker: Checker, admitted: Admitted
    ) -> None:
        unchecked = [
            one for one in landing if one.checked is None or one.checked.basis is not checker.basis
        ]
        size_bytes = sum(len(one.sealed.content) for one in unchecked)
        results = await off_loop_if_large(size_bytes, _check_all, checker, unchecked)
        for pending, first in zip(unchecked, results, strict=True):
            pending.checked = None
            result = (
                await self._check_with_named(pending, checker, first)
                if isinstance(first, NeedsManifests)
                else first
            )
            if isinstance(result, CheckedRequest):
                pending.checked = result
            elif isinstance(result, FrazilError):
                admitted.failed.append((pending, result))
            else:
                reason, message = result
                admitted.refused.append(Quarantining(pending, reason, message))
        for pending in landing:
            if pending.checked is not None and pending.suspicion is None:
                admitted.candidates.append(pending.checked)
            elif pending.checked is not None and pending.suspicion is not None:
                admitted.suspects.append(Quarantining(pending, *pending.suspicion))

    async def _check_with_named(
        self, pending: Pending, checker: Checker, needs: NeedsManifests
    ) -> CheckedRequest | _Refusal | FrazilError:
        read: dict[str, bytes] = {}
        for location, length in needs.lengths.items():
            try:
                read[location] = await self._storage.get(location, length=length + 1)
            except NotFoundError as error:
                message = f"the manifest `{location[:512]}` cannot be read: {str(error)[:512]}"
                return Reason.MANIFEST_MISSING, message
            except FrazilError as error:
                return error
        result = await off_loop_if_large(
            sum(needs.lengths.values()), _check_one, checker, pending.sealed, read
        )
        if isinstance(result, NeedsManifests):
            raise InvariantError(f"asked twice for the manifests of `{pending.key}`")
        return result


_Refusal = tuple[Reason, str]


def _answer(pending: Pending, state: TableState, checker: Checker) -> LedgerAnswer:
    request = pending.sealed.request
    try:
        checker.check_target(request)
    except InvalidRequestError as error:
        return Refused(Reason(error.reason), str(error))
    return state.ledger.ask(request)


def _place(key: str, listed: Container[str], judged: Container[str]) -> _Place:
    if key not in listed:
        return _Place.NOWHERE
    return _Place.JUDGED if key in judged else _Place.INBOX


def _unproven(pending: Pending) -> Quarantining:
    request = pending.sealed.request
    return Quarantining(
        pending,
        Reason.EPOCH_LANDED_UNPROVEN,
        f"epoch {request.epoch} of producer `{request.producer.id}` landed so long ago that neither"
        " the ledger nor a manifest list proves what it stood for",
    )


def _check_all(
    checker: Checker, waiting: Sequence[Pending]
) -> list[CheckedRequest | NeedsManifests | _Refusal]:
    return [_check_one(checker, pending.sealed, None) for pending in waiting]


def _check_one(
    checker: Checker, sealed: SealedRequest, read: dict[str, bytes] | None
) -> CheckedRequest | NeedsManifests | _Refusal:
    try:
        return checker.check(sealed, read)
    except InvalidRequestError as error:
        return Reason(error.reason), str(error)
    except Exception as error:  # noqa: BLE001  # one request must not stop the others
        log.exception("check.crashed", key=sealed.request.inbox_key)
        return Reason.PLAN_FAILED, f"the check itself failed: {error!r}"
