"""Checks of requests that take long, beside the rounds of their table: the others land meanwhile.

Such a request is set aside; once it is checked it is ready again, and the next round takes what was
found, if the table is still as it was for the check.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from committer.errors import FrazilError, InvalidRequestError, InvariantError, NotFoundError
from committer.plan.check import CheckedRequest, Checker, NeedsManifests
from committer.reason import Reason
from committer.request import REQUEST_BYTES_MAX
from committer.service.inbox_keys import folder_of
from committer.service.log import log
from committer.service.pending import Pending, Refusal, Waiting
from committer.service.shop import Shop


class LargeChecks:
    """Those of one table. `is_ready` is called when one has come back."""

    def __init__(self, waiting: Waiting, shop: Shop, is_ready: Callable[[], None]) -> None:
        self._waiting = waiting
        self._shop = shop
        self._is_ready = is_ready
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, pending: Pending, checker: Checker) -> None:
        """Set a ready request aside and check it."""
        self._waiting.set_aside(pending.key)
        task = asyncio.create_task(self._check(pending, checker), name="large check")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Give up, at the end of the table; what waits stays in the inbox."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        for pending in self._waiting.all():
            self._waiting.drop_named(pending)

    async def _check(self, pending: Pending, checker: Checker) -> None:
        self._waiting.drop_named(pending)
        found = await self._found(pending, checker)
        if not isinstance(found, CheckedRequest):
            self._waiting.drop_named(pending)
        if isinstance(found, tuple) and found[0] is Reason.PLAN_FAILED:
            self._shop.metrics.crashed("check")
        pending.found = checker.basis, found
        self._waiting.bring_back(pending.key)
        self._is_ready()

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
        producer, checks = folder_of(pending.key), self._shop.checks
        first = await checks.check(checker, pending.sealed, producer, None)
        if isinstance(first, CheckedRequest):
            return first
        named = await self._read(pending, first)
        second = await checks.check(checker, pending.sealed, producer, named)
        if isinstance(second, NeedsManifests):
            raise InvariantError(f"asked twice for the manifests of `{pending.key}`")
        return second

    async def _read(self, pending: Pending, needs: NeedsManifests) -> Mapping[str, bytes]:
        size_bytes = sum(needs.lengths.values())
        if size_bytes > REQUEST_BYTES_MAX:
            raise InvalidRequestError(
                Reason.REQUEST_TOO_LARGE,
                f"the manifests that it names have {size_bytes} bytes, the limit is"
                f" {REQUEST_BYTES_MAX}",
            )
        await self._shop.named.wait_for_room(size_bytes)
        pending.named_bytes += size_bytes
        read: dict[str, bytes] = {}
        for location, length in needs.lengths.items():
            try:
                read[location] = await self._shop.storage.get(location, length=length + 1)
            except NotFoundError as error:
                message = f"the manifest `{location[:512]}` cannot be read: {str(error)[:512]}"
                raise InvalidRequestError(Reason.MANIFEST_MISSING, message) from None
        return read
