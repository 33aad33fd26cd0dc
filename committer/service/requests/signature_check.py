"""Checks signatures against the known keys, and requires one where a table or the settings ask for
it.

Asked once for each request, before its check and behind the ledger: a landed request stays landed,
whatever key signed it. A request that was found authentic stays so while it waits here, because an
attempt with it may be on its way when its key is taken back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from committer.errors import FrazilError, InvalidRequestError
from committer.iceberg.metadata.property_values import is_true
from committer.ports.world import World
from committer.reason import Reason
from committer.request.signature import Keys, verify
from committer.service.requests.pending import Pending
from committer.service.telemetry.health import Health
from committer.storage.inbox.inbox import Inbox
from committer.storage.inbox.key_file import KeyFile

REQUIRE_PROPERTY = "frazil.require-signature"
REREAD_S = 10.0
# A request may be signed by a key that was added since; requests cannot make the file be read more
# often than this.
REREAD_UNKNOWN_S = 1.0


@dataclass(eq=False, kw_only=True)
class Signatures:
    """Judges signatures for all tables of a process. Without a file of keys they mean nothing."""

    key_file: KeyFile | None = None
    required: bool = False
    inbox: Inbox
    world: World
    health: Health

    def __post_init__(self) -> None:
        self._keys: Keys = {}

    async def load(self) -> None:
        """Read the keys for the first time. Errors: as `KeyFile.read`."""
        if self.key_file is not None:
            self._keys = await self.key_file.read()

    async def run(self) -> None:
        """Reread the file of keys until canceled. While it cannot be read, the known keys stay."""
        while self.key_file is not None:
            await self.world.sleep(REREAD_S)
            await self._reread(self.key_file)

    async def _reread(self, key_file: KeyFile) -> None:
        try:
            self._keys = await key_file.read()
        except FrazilError as error:
            self.health.unavailable("keys", error, mitigation="using the known keys")
        else:
            self.health.recovered("keys")

    async def check(self, pending: Pending, properties: Mapping[str, str]) -> None:
        """Check a request of a table with these properties, unless it was checked before.

        Errors: `InvalidRequestError` with the reason; `NotFoundError` where it has left the inbox;
        those of the storage.
        """
        if pending.is_authentic:
            return
        request = pending.sealed.request
        if request.signature is None:
            if self.required or is_true(properties, REQUIRE_PROPERTY, default=False):
                raise InvalidRequestError(
                    Reason.SIGNATURE_MISSING,
                    f"requests for table `{request.identifier}` must be signed, this one is not",
                )
        elif self.key_file is not None:
            if request.key_id not in self._keys:
                self._keys = await self.key_file.keys(age_s_max=REREAD_UNKNOWN_S)
            verify(pending.sealed, self._keys)
            if request.not_after_ms is not None:
                await self._check_time(pending.key, request.not_after_ms)

    async def _check_time(self, key: str, not_after_ms: int) -> None:
        """Check the time at which the request became durable, not the current time: an outage of
        the committer costs a producer nothing, and every process comes to the same answer.
        """
        if self.world.now_ms() <= not_after_ms:
            return
        durable_ms = await self.inbox.modified_ms(key)
        if durable_ms > not_after_ms:
            late_s = (durable_ms - not_after_ms) / 1000
            raise InvalidRequestError(
                Reason.SIGNATURE_EXPIRED, f"it came into the inbox {late_s:.0f} s after its time"
            )
