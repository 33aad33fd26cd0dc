"""Checks signatures against the known keys, and requires one where a table, the settings or the
operation ask for it.

Asked once for each request, before its check and behind the ledger: a landed request stays landed,
whatever key signed it. A request that was found authentic stays so while it waits here, because an
attempt with it may be on its way when its key is taken back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from committer.errors import FrazilError, InvalidRequestError
from committer.iceberg.metadata.property_values import is_true
from committer.ports.world import World
from committer.reason import Reason
from committer.request.commit_request import CommitRequest
from committer.request.request_format import EncodedRequest, line_digest
from committer.request.signature import Keys, verify
from committer.request.unsigned_operations import (
    ALL_OPERATIONS,
    UNSIGNED_PROPERTY,
    asked_operations,
    listed,
    parse_operations,
)
from committer.service.requests.pending import Pending
from committer.service.telemetry.health import Health
from committer.storage.inbox.inbox import Inbox
from committer.storage.inbox.key_file import KeyFile

REQUIRE_PROPERTY = "frazil.require-signature"
REREAD_S = 10.0
# A request may be signed by a key that was added since; requests cannot make the file be read more
# often than this.
REREAD_UNKNOWN_S = 1.0
# Each task of upkeep has one request outstanding.
_ISSUED_MAX = 20_000


class IssuedRequests:
    """The requests that this process has published itself: the digests of their lines, by key.

    They need no key: only this memory proves their origin, as any client may name its producer like
    one of upkeep. Bounded: the oldest are forgotten first.
    """

    def __init__(self) -> None:
        self._digests: dict[str, str] = {}

    def add(self, sealed: EncodedRequest) -> None:
        """Note a request, before it becomes durable."""
        self._digests[sealed.request.inbox_key] = line_digest(sealed.content)
        if len(self._digests) > _ISSUED_MAX:
            del self._digests[next(iter(self._digests))]

    def contains(self, sealed: EncodedRequest) -> bool:
        """Return whether this process has published exactly this request."""
        digest = self._digests.get(sealed.request.inbox_key)
        return digest is not None and digest == line_digest(sealed.content)


@dataclass(eq=False, kw_only=True)
class Signatures:
    """Judges signatures for all tables of a process. Without a file of keys they mean nothing.

    `unsigned`: the operations that need no signature where the table's property does not say.
    """

    key_file: KeyFile | None = None
    required: bool = False
    unsigned: frozenset[str] = ALL_OPERATIONS
    inbox: Inbox
    world: World
    health: Health
    issued: IssuedRequests = field(default_factory=IssuedRequests)

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

    async def check(self, pending: Pending, properties: Mapping[str, str]) -> bool:
        """Check a request of a table with these properties. Return whether its origin is proven, by
        a signature or because this process has published it.

        Errors: `InvalidRequestError` with the reason; `NotFoundError` where it has left the inbox;
        those of the storage.
        """
        request = pending.sealed.request
        if request.signature is not None and self.key_file is not None:
            await self._verify(self.key_file, pending)
            return True
        if self.issued.contains(pending.sealed):
            return True
        self._check_unsigned(request, properties)
        return False

    async def _verify(self, key_file: KeyFile, pending: Pending) -> None:
        request = pending.sealed.request
        if request.key_id not in self._keys:
            self._keys = await key_file.keys(age_s_max=REREAD_UNKNOWN_S)
        verify(pending.sealed, self._keys)
        if request.not_after_ms is not None:
            await self._check_time(pending.key, request.not_after_ms)

    def _check_unsigned(self, request: CommitRequest, properties: Mapping[str, str]) -> None:
        """Check a request without a signature, or with one that cannot be verified."""
        if self.required or is_true(properties, REQUIRE_PROPERTY, default=False):
            raise InvalidRequestError(
                Reason.SIGNATURE_MISSING,
                f"requests for table `{request.identifier}` must be signed, {_unsigned(request)}",
            )
        text = properties.get(UNSIGNED_PROPERTY, "").strip()
        allowed = _operations_of(text) if text else self.unsigned
        refused = asked_operations(request) - allowed
        if refused:
            said = f"the table's property `{UNSIGNED_PROPERTY}`, `{text[:100]}`,"
            source = said if text else "the setting `security.unsigned_operations`"
            raise InvalidRequestError(
                Reason.UNSIGNED_OPERATION,
                f"{listed(refused)} of table `{request.identifier}` needs a signature, and"
                f" {_unsigned(request)}: {source} allows {listed(allowed)} without one;"
                " sign it with a key, or have an operator allow it",
            )

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


def _operations_of(text: str) -> frozenset[str]:
    """Read a table's property. A text that cannot be read allows nothing."""
    try:
        return parse_operations(text)
    except ValueError:
        return frozenset()


def _unsigned(request: CommitRequest) -> str:
    if request.signature is None:
        return "this one is not"
    return "this one's signature cannot be verified, as the committer has no `security.keys`"
