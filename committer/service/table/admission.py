"""Decides which waiting requests may land on a state of the table, and how the others end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from committer.errors import FrazilError, InvalidRequestError, InvariantError, NotFoundError
from committer.iceberg.metadata.location_properties import AllowedLocations
from committer.plan.batch.request_check import CheckBasis, Checker
from committer.plan.ledger.evidence import may_lack_snapshot
from committer.plan.ledger.ledger import (
    Duplicate,
    Forgotten,
    LedgerAnswer,
    NotLanded,
    Refused,
    compare,
)
from committer.plan.ledger.state import TableState
from committer.ports.catalog_capabilities import CatalogCapabilities
from committer.reason import Reason
from committer.request.commit_request import CommitRequest
from committer.request.transaction import TRANSACTION_TABLES_MAX
from committer.service.checks.landing_order import LandingOrder
from committer.service.requests.evidence_reader import EvidenceReader
from committer.service.requests.inbox_lookup import InboxLookup, Place
from committer.service.requests.moved_table import MovedTable
from committer.service.requests.pending import Pending, Waiting
from committer.service.requests.signature_check import Signatures
from committer.service.table.admission_outcome import (
    AdmissionOutcome,
    AlreadyLanded,
    QuarantineVerdict,
)
from committer.service.table.content_checks import ContentChecks


@dataclass(eq=False)
class Admission:
    """Asks the ledger and checks requests; remembers the basis of the last checks."""

    catalog_name: str
    capabilities: CatalogCapabilities
    waiting: Waiting
    inbox_lookup: InboxLookup
    signatures: Signatures
    evidence: EvidenceReader
    content_checks: ContentChecks
    moved: MovedTable
    allowed: AllowedLocations

    def __post_init__(self) -> None:
        self._checker: Checker | None = None
        self._order = LandingOrder(self.inbox_lookup)

    @property
    def basis(self) -> CheckBasis:
        """The basis that the last checks depended on."""
        if self._checker is None:
            raise InvariantError("nothing was admitted yet")
        return self._checker.basis

    async def admit(
        self, waiting: Sequence[Pending], state: TableState, generation: int
    ) -> AdmissionOutcome:
        """Look at the requests in order, of which only the last may change the table: those after
        it are for the table that it makes. `generation` counts the loads of the state.
        """
        checker = self._checker_of(state)
        outcome = AdmissionOutcome()
        landing: list[Pending] = []
        unproven: list[tuple[Pending, NotLanded | Forgotten]] = []
        for pending in waiting:
            answer = _answer(pending, state, checker)
            match answer:
                case Duplicate(landed, warning):
                    outcome.duplicates.append(AlreadyLanded(pending, landed, warning))
                case Refused(reason, message):
                    refusal = QuarantineVerdict(pending, reason, message)
                    if reason is Reason.EPOCH_CONTENT_DIFFERS:
                        await self._prove(pending, state, outcome, refusal)
                    else:
                        outcome.refused.append(refusal)
                case _ if not await self._is_authentic(pending, state, outcome):
                    pass
                case NotLanded(known) if (
                    known and not pending.is_shared
                ) or pending.present_in == generation:
                    landing.append(pending)
                case NotLanded() | Forgotten():
                    unproven.append((pending, answer))
        if unproven:
            landing.extend(await self._look_up(unproven, state, generation, outcome))
            # Those that were looked up keep their places.
            places = {pending.key: place for place, pending in enumerate(waiting)}
            landing.sort(key=lambda pending: places[pending.key])
        await self.content_checks.check_all(landing, checker, outcome, state.metadata.properties)
        await self._hold(landing, state, outcome)
        return outcome

    async def may_land(self, pending: Pending, state: TableState, generation: int) -> bool:
        """Return whether a request that has joined a transaction may still land on this state. If
        not, or if that cannot be told, the next round of the table decides.
        """
        checker = self._checker_of(state)
        if pending.checked is None or pending.check is None or pending.check.basis != checker.basis:
            return False
        answer = _answer(pending, state, checker)
        if not isinstance(answer, NotLanded) or not pending.is_authentic:
            return False
        table_uuid = state.metadata.require_uuid()
        is_proven = answer.known and not pending.is_shared
        if not is_proven and pending.present_in != generation:
            (place,) = await self.inbox_lookup.find_all([pending], table_uuid, generation)
            if place is not Place.INBOX:
                return False
            self.waiting.present(pending, generation)
        return not await self._order.held([pending.checked], state.ledger, table_uuid)

    async def _hold(
        self, landing: Sequence[Pending], state: TableState, outcome: AdmissionOutcome
    ) -> None:
        """Leave out those of ordered producers whose turn has not come: they are looked at again
        later."""
        table_uuid = state.metadata.require_uuid()
        held = await self._order.held(outcome.candidates, state.ledger, table_uuid)
        if held:
            outcome.candidates = [one for one in outcome.candidates if one.sealed.key not in held]
            outcome.failed.extend(
                (pending, held[pending.key]) for pending in landing if pending.key in held
            )

    async def without_table(self, waiting: Sequence[Pending], generation: int) -> AdmissionOutcome:
        """Look at the requests of a table that the catalog does not have.

        Errors: those of `MovedTable.left`.
        """
        outcome = AdmissionOutcome()
        left = await self.moved.left(waiting, generation)
        if left is None:
            outcome.refused.extend(_unknown_table(one, self.catalog_name) for one in waiting)
        else:
            outcome.left_before.extend(left)
        return outcome

    async def close(self) -> None:
        """Cancel the checks that are under way."""
        await self.content_checks.close()

    def _checker_of(self, state: TableState) -> Checker:
        can = self.capabilities
        basis = CheckBasis.of(
            self.catalog_name,
            state.metadata,
            can.property_key_chars_max,
            _tables_max(can),
            self.allowed,
        )
        if self._checker is None or self._checker.basis != basis:
            self._checker = Checker(basis, state.metadata.current_schema)
        return self._checker

    async def _is_authentic(
        self, pending: Pending, state: TableState, outcome: AdmissionOutcome
    ) -> bool:
        """Return whether a request may land as far as its signature goes;
        if not, add why to `outcome`."""
        if pending.is_authentic:
            return True
        try:
            is_proven = await self.signatures.check(pending, state.metadata.properties)
        except InvalidRequestError as error:
            outcome.refused.append(QuarantineVerdict(pending, Reason(error.reason), str(error)))
        except NotFoundError:
            outcome.left_before.append(pending)
        except FrazilError as error:
            outcome.failed.append((pending, error))
        else:
            self.waiting.authenticated(pending, is_proven=is_proven)
            return True
        return False

    async def _look_up(
        self,
        unproven: Sequence[tuple[Pending, NotLanded | Forgotten]],
        state: TableState,
        generation: int,
        outcome: AdmissionOutcome,
    ) -> list[Pending]:
        """Ask the inbox where the ledger cannot answer; return those that may land.

        Only an inbox object seen after the base was loaded proves that the request has not landed
        and left the inbox since. A request that has left it gets no receipt.
        """
        found = await self.inbox_lookup.find_all(
            [pending for pending, _ in unproven], state.metadata.require_uuid(), generation
        )
        landing = []
        for (pending, answer), place in zip(unproven, found, strict=True):
            if isinstance(place, FrazilError):
                outcome.failed.append((pending, place))
            elif place is Place.NOWHERE:
                outcome.left_before.append(pending)
            elif place is Place.QUARANTINED:
                outcome.already_quarantined.append(pending)
            elif isinstance(answer, NotLanded):
                self.waiting.present(pending, generation)
                landing.append(pending)
            else:
                await self._prove(pending, state, outcome, _unproven(pending, answer.why))
        return landing

    async def _prove(
        self,
        pending: Pending,
        state: TableState,
        outcome: AdmissionOutcome,
        refusal: QuarantineVerdict,
    ) -> None:
        """Look for proof in retained history of an epoch that the ledger has forgotten. It may
        stand beside another content of the epoch: another engine removed the ledger in between, and
        an operator accepted that.
        """
        request = pending.sealed.request
        try:
            landed = await self.evidence.find(state, request)
        except FrazilError as error:
            outcome.failed.append((pending, error))
            return
        match compare(landed, request) if landed else None:
            case Duplicate(found, warning):
                outcome.duplicates.append(AlreadyLanded(pending, found, warning))
            case Refused(reason, message):
                outcome.refused.append(QuarantineVerdict(pending, reason, message))
            case None:
                outcome.refused.append(refusal)


def _tables_max(can: CatalogCapabilities) -> int:
    """Return how many tables the catalog can change together; 0: it cannot."""
    if not can.has_transactions:
        return 0
    return can.transaction_tables_max or TRANSACTION_TABLES_MAX


def _answer(pending: Pending, state: TableState, checker: Checker) -> LedgerAnswer:
    request = pending.sealed.request
    try:
        checker.check_target(request)
    except InvalidRequestError as error:
        return Refused(Reason(error.reason), str(error))
    return state.ledger.ask(request)


def _unproven(pending: Pending, why: str | None) -> QuarantineVerdict:
    request = pending.sealed.request
    where = f"epoch {request.epoch} of producer `{request.producer.id}`"
    sources = "neither the ledger nor a manifest list"
    if may_lack_snapshot(request):
        sources = "neither the ledger, nor a manifest list, nor a metadata file in the table's log"
    problem = (
        f"{where} landed so long ago that {sources} proves what it stood for"
        if why is None
        else f"{where} may have landed already, and {sources} proves it: {why}"
    )
    todo = (
        f"if the table has {_effect(request)}, discard this request; if not,"
        " `frazil quarantine replay --force` it"
    )
    return QuarantineVerdict(pending, Reason.EPOCH_LANDED_UNPROVEN, f"{problem}; {todo}")


def _effect(request: CommitRequest) -> str:
    """Return what an operator looks for in the table."""
    if request.stage_only:
        return "its staged snapshot, or has published it"
    return "its change" if request.operation in ("alter", "cherry-pick") else "its rows"


def _unknown_table(pending: Pending, catalog_name: str) -> QuarantineVerdict:
    """Return the verdict on a request for a table that the catalog does not have."""
    identifier = pending.sealed.request.identifier
    return QuarantineVerdict(
        pending,
        Reason.TABLE_UNKNOWN,
        f"the catalog `{catalog_name}` has no table `{identifier}`",
    )
