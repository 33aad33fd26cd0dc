"""Checks large requests beside the rounds of their table, so that the others land in the meantime.

Such a request is set aside; once it is checked it is ready again, and the next round takes what was
found, if the table is still as it was for the check. Requests whose checks end one soon after
another become ready together, so that one commit has them all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from committer.errors import FrazilError, InvalidRequestError, InvariantError, NotFoundError
from committer.plan.batch.request_check import CheckedRequest, Checker, Inflates, NeedsManifests
from committer.ports.storage import Storage
from committer.reason import Reason
from committer.request.commit_request import REQUEST_BYTES_MAX
from committer.service.checks.checks import Checks
from committer.service.requests.pending import Check, Pending, Refusal, Waiting
from committer.service.telemetry.log import log
from committer.service.telemetry.metrics import Metrics

# How long a checked request waits for others that are still being checked.
GATHER_S = 0.25


@dataclass(eq=False)
class LargeChecks:
    """Those of one table."""

    waiting: Waiting
    checks: Checks
    storage: Storage
    metrics: Metrics

    def __post_init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._gathered: list[tuple[Pending, Check]] = []
        self._gathering: asyncio.TimerHandle | None = None

    def start(self, pending: Pending, checker: Checker) -> None:
        """Set a ready request aside and check it."""
        self.waiting.set_aside(pending)
        task = asyncio.create_task(self._check(pending, checker), name="large check")
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def close(self) -> None:
        """Cancel all checks at the end of the table; the requests stay in the inbox."""
        self._bring_back()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        for pending in self.waiting.all():
            self.waiting.drop_named(pending)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Make the checked requests ready once no other is being checked,
        at the latest `GATHER_S` after the first of them.
        """
        self._tasks.discard(task)
        if not self._tasks:
            self._bring_back()
        elif self._gathered and self._gathering is None:
            loop = asyncio.get_running_loop()
            self._gathering = loop.call_later(GATHER_S, self._bring_back)

    def _bring_back(self) -> None:
        if self._gathering is not None:
            self._gathering.cancel()
            self._gathering = None
        gathered, self._gathered = self._gathered, []
        for pending, check in gathered:
            self.waiting.checked(pending, check)

    async def _check(self, pending: Pending, checker: Checker) -> None:
        self.waiting.drop_named(pending)
        found = await self._found(pending, checker)
        if not isinstance(found, CheckedRequest):
            self.waiting.drop_named(pending)
        if isinstance(found, tuple) and found[0] is Reason.PLAN_FAILED:
            self.metrics.crashed("check")
        self._gathered.append((pending, Check(checker.basis, found)))

    async def _found(
        self, pending: Pending, checker: Checker
    ) -> CheckedRequest | Refusal | FrazilError:
        try:
            return await self._checked(pending, checker)
        except InvalidRequestError as error:
            return Reason(error.reason), str(error)
        except FrazilError as error:
            return error
        except Exception as error:  # noqa: BLE001  # one request must not stop the others
            log.exception("check.crashed", key=pending.key)
            return Reason.PLAN_FAILED, f"the check itself failed: {error!r}"

    async def _checked(self, pending: Pending, checker: Checker) -> CheckedRequest:
        """Ask until nothing is missing: the manifests that it names, room for what is kept."""
        sealed, producer = pending.sealed, pending.key.folder
        lengths: Mapping[str, int] | None = None
        inflated_bytes = free_bytes = pending.inflated_bytes_max
        while True:
            read = None if lengths is None else await read_named(self.storage, lengths)
            found = await self.checks.check(checker, sealed, producer, read, inflated_bytes)
            # Not while it waits for room: others may wait for what it holds.
            del read
            match found:
                case CheckedRequest():
                    return found
                case NeedsManifests(lengths) if pending.named_bytes == 0:
                    pass
                case Inflates(inflated_bytes):
                    pass
                case _:
                    raise InvariantError(f"asked twice for the manifests of `{pending.key}`")
            named_bytes = sum((lengths or {}).values())
            kept_bytes = 0 if inflated_bytes == free_bytes else inflated_bytes
            await self._make_room(pending, named_bytes + kept_bytes)

    async def _make_room(self, pending: Pending, size_bytes: int) -> None:
        if size_bytes > REQUEST_BYTES_MAX:
            raise InvalidRequestError(
                Reason.REQUEST_TOO_LARGE,
                f"its manifests take {size_bytes} bytes, those that it names and those that are in"
                f" blocks of few entries inflated; the limit is {REQUEST_BYTES_MAX}",
            )
        await self.waiting.make_room(pending, size_bytes)


async def read_named(storage: Storage, lengths: Mapping[str, int]) -> Mapping[str, bytes]:
    """Read the manifests that a request names by path. Of one that is longer than the request says,
    a byte too many is read.

    Errors: `InvalidRequestError` where one does not exist; those of the storage.
    """
    read: dict[str, bytes] = {}
    for location, length in lengths.items():
        try:
            read[location] = await storage.get(location, length=length + 1)
        except NotFoundError as error:
            message = f"the manifest `{location[:512]}` cannot be read: {str(error)[:512]}"
            raise InvalidRequestError(Reason.MANIFEST_MISSING, message) from None
    return read
