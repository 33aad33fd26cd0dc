"""The five ports of the service and the answers of a swap. Each docstring is a contract.

`tests/contract/` has one test per obligation and runs it on every adapter. An adapter takes plain
keyword arguments and knows nothing of settings, planning or the service.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol
from uuid import UUID

from committer.errors import (
    AlreadyExistsError,
    NotFoundError,
    ObjectTooLargeError,
    StorageUnavailableError,
)
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.updates.metadata_update import Update
from committer.iceberg.updates.requirement import Requirement
from committer.request import Receipt, TableIdentifier
from committer.skips import Skips

SHARDS = 64
ALL_SHARDS: tuple[int, ...] = tuple(range(SHARDS))


# --- Storage -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NewObject:
    """An object to be created: its full location (URI or path) and content."""

    location: str
    content: bytes


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """An object as a listing or `head` describes it. `etag` changes when other content replaces the
    content; some storages make it of the content alone.
    """

    location: str
    size_bytes: int
    modified_ms: int
    etag: str


class Storage(Protocol):
    """Objects by location. An object appears whole or not at all; no reader sees half of one.

    Obligations of every method: a missing permission is `AccessError`, an unreachable or overloaded
    backend is `StorageUnavailableError`, a location of a foreign scheme is `SettingsError`.
    Locations in answers are spelled as the caller spelled them (a listing: as its prefix was
    spelled).
    """

    async def get(
        self,
        location: str,
        *,
        offset: int = 0,
        length: int | None = None,
        size_bytes_max: int | None = None,
    ) -> bytes:
        """Return the bytes, or the given range cut to the object's end. Absent: `NotFoundError`.

        An object larger than `size_bytes_max` is `ObjectTooLargeError`, before its first byte is
        read.
        """

    async def head(self, location: str) -> ObjectInfo:
        """Describe one object without reading it. Absent: `NotFoundError`."""

    async def create(self, objects: Sequence[NewObject]) -> None:
        """Create every object, in parallel where that helps, durably (survives a power cut).

        A location that exists raises `AlreadyExistsError` naming it, whatever its content, and
        leaves it untouched; of two concurrent creates of one location exactly one returns. If the
        call raises, any subset of the other objects may have been created. The caller may repeat
        the call and compare contents (`committer.ports.create_or_equal`).
        """

    async def replace(self, location: str, content: bytes, *, etag: str | None) -> str:
        """Write the object if its etag is still `etag` (None: absent) and return the new one.

        A failed condition raises `AlreadyExistsError`. Of two concurrent replaces of one etag
        exactly one returns.
        """

    async def delete(self, locations: Sequence[str]) -> None:
        """Delete all; an absent object counts as deleted. May be repeated."""

    def list(self, prefix: str, *, skips: Skips | None = None) -> AsyncIterator[ObjectInfo]:
        """Yield every object below the folder `prefix` in ascending order of location.

        Objects created before the call started and not deleted since are all yielded. A prefix
        with nothing below it, or that does not exist, yields nothing.

        An entry that is no object (a link, a FIFO, …) is not yielded, not opened, and never fails
        the listing; `skips` collects it. Where objects may be hidden (a folder without rights) the
        listing fails, unless `skips` is given to collect that too.
        """

    async def probe(self, prefix: str) -> None:
        """Prove below `prefix` that create-only and conditional writes are enforced; clean up.

        A backend that does not enforce them raises `SettingsError` saying which condition was
        ignored.
        """

    async def close(self) -> None:
        """Release connections. Idempotent."""


def require_size(location: str, size_bytes: int, size_bytes_max: int | None) -> None:
    """Refuse to read an object that is larger. Errors: `ObjectTooLargeError`."""
    if size_bytes_max is not None and size_bytes > size_bytes_max:
        raise ObjectTooLargeError(location, size_bytes, size_bytes_max)


async def create_or_equal(storage: Storage, created: NewObject) -> bool:
    """Create one object: True if it was written now, False if an equal one stood there already.

    Errors: `AlreadyExistsError` where another content has the location;
    `StorageUnavailableError` where what stood there was deleted before it could be compared.
    """
    try:
        await storage.create((created,))
    except AlreadyExistsError:
        try:
            standing = await storage.get(created.location)
        except NotFoundError as error:
            message = f"`{created.location}` existed, and was deleted meanwhile"
            raise StorageUnavailableError(message) from error
        if standing != created.content:
            raise
        return False
    return True


# --- Catalog -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """A table as a catalog pointer names it: metadata, and the location that it was read from.

    Errors: `UnsupportedError` for a table without a uuid, which nothing tells from the next one of
    its name.
    """

    identifier: TableIdentifier
    metadata: TableMetadata
    metadata_location: str

    def __post_init__(self) -> None:
        self.metadata.require_uuid()


@dataclass(frozen=True, slots=True)
class Swap:
    """One conditional replacement of a table pointer.

    `updates` turn `base.metadata` into `metadata`; `requirements` say what a catalog that evaluates
    changes itself has to check. `metadata_location` is new for each attempt and names where a
    catalog that holds a pointer finds `metadata`.
    """

    base: LoadedTable
    requirements: tuple[Requirement, ...]
    updates: tuple[Update, ...]
    metadata: TableMetadata
    metadata_location: str


@dataclass(frozen=True, slots=True)
class Committed:
    """The swap was applied; `table` is what is current now (perhaps not what was planned)."""

    table: LoadedTable


@dataclass(frozen=True, slots=True)
class Conflict:
    """The condition did not hold, so this attempt never lands. `current` if the back end told."""

    current: LoadedTable | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """The back end refused the change itself (not its timing), so this attempt never lands."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """The answer was lost. The attempt may have landed, or may land later as long as its base is
    current.
    """

    cause: str


SwapAnswer = Committed | Conflict | Rejected | Unknown


class Catalog(Protocol):
    """Names of tables and the pointer of each.

    Obligations of every method: `CatalogUnavailableError` when the back end surely applied nothing
    and may answer later; `AccessError` for permissions; `InvalidMetadataError` for metadata that
    breaks the specification.
    """

    async def load(self, identifier: TableIdentifier) -> LoadedTable:
        """Read the pointer (strongly consistent) and the metadata it names. Absent, also because no
        table of this catalog can be called so: `NoSuchTableError`.
        """

    async def current_location(self, identifier: TableIdentifier) -> str:
        """Read the pointer only: the cheap question "did it move?". Absent: as `load`."""

    def objects_before(self, swap: Swap) -> tuple[NewObject, ...]:
        """Return the objects that must be durable before `swap` is sent: the metadata, or none."""

    async def swap(self, swap: Swap) -> SwapAnswer:
        """Replace the pointer if the base is still current.

        Raise only if nothing can have been applied; in doubt answer `Unknown`. Never resend. A
        failed condition after a resend below us is `Unknown`. A dropped table is `Conflict`. Two
        concurrent swaps of one base: at most one is `Committed`.
        """

    async def create_table(self, table: LoadedTable) -> None:
        """Write the first metadata file and the pointer. Name taken: `TableAlreadyExistsError`.

        A missing namespace is `NoSuchNamespaceError`.
        """

    async def drop_table(self, identifier: TableIdentifier) -> None:
        """Remove the pointer; files stay. Absent: `NoSuchTableError`."""

    async def rename_table(self, identifier: TableIdentifier, to: TableIdentifier) -> None:
        """Give the table another name in one step; its files and metadata stay as they are.

        Absent: `NoSuchTableError`. New name taken: `TableAlreadyExistsError`. A missing namespace
        is `NoSuchNamespaceError`. A swap under the old name conflicts from then on.
        """

    async def register_table(
        self, identifier: TableIdentifier, metadata_location: str
    ) -> LoadedTable:
        """Write a pointer to a metadata file that is there, and return the table that it names.

        File absent: `NotFoundError`. Name taken: `TableAlreadyExistsError`, unless by a pointer to
        this very file. A missing namespace is `NoSuchNamespaceError`. The file is never deleted.
        """

    async def list_tables(self, namespace: tuple[str, ...]) -> list[TableIdentifier]:
        """All tables directly in the namespace, sorted. Absent: `NoSuchNamespaceError`."""

    async def create_namespace(self, namespace: tuple[str, ...]) -> None:
        """Create the namespace; an existing one is left as it is."""

    async def list_namespaces(self) -> list[tuple[str, ...]]:
        """All namespaces, sorted."""

    async def default_location(self, namespace: tuple[str, ...]) -> str | None:
        """The folder that the namespace itself names for its tables; None if it names none."""

    async def probe(self) -> None:
        """Prove that the swap's condition is enforced (a stale base must lose); clean up. Else
        `SettingsError`.
        """

    async def close(self) -> None:
        """Release connections. Idempotent."""


# --- Queue ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Doorbell:
    """Says that a request waits in the inbox. `content` is the request itself while it is small."""

    table_uuid: UUID
    inbox_key: str
    digest: str
    content: bytes | None
    reply_to: str | None


@dataclass(frozen=True, slots=True)
class Delivery:
    """A doorbell handed to this consumer. `token` acknowledges it; `deliveries` counts from 1."""

    token: str
    doorbell: Doorbell
    deliveries: int


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """Doorbells in all shards, and those of them handed out but not acknowledged."""

    waiting: int
    pending: int


class Queue(Protocol):
    """Doorbells in `SHARDS` shards by table uuid, and receipts on their way back.

    Obligations of every method: an unreachable server is `QueueUnavailableError`. At-least-once: a
    doorbell is delivered until acknowledged, perhaps twice, in no promised order, and may be lost
    with the server. No client library resends a write.
    """

    async def announce(self, doorbells: Sequence[Doorbell]) -> int:
        """Append each doorbell to the shard of its table. Repeated, it is delivered twice.

        The answer, of the same exchange, is the `backlog` of the fullest of these shards.
        """

    async def backlog(self, table_uuid: UUID) -> int:
        """How many doorbells of the shard of this table are not acknowledged yet."""

    async def read(
        self, *, count_max: int, wait_s: float, shards: Collection[int] = ALL_SHARDS
    ) -> Sequence[Delivery]:
        """Take up to `count_max` new doorbells of each of these shards (at least one); wait up to
        `wait_s` for the first.

        After an error or a cancelled read the next call returns what was handed to this consumer
        and never seen. So does the first call that names a shard after one that did not: what was
        held of a shard that is not named is let go, and may be taken over or delivered again;
        acknowledging it still works. A missing stream or group is created from the beginning,
        never from the end.
        """

    async def reclaim(
        self, *, idle_s: float, shards: Collection[int] = ALL_SHARDS
    ) -> Sequence[Delivery]:
        """Take over doorbells of these shards that another consumer holds and has not acknowledged
        for `idle_s`.
        """

    def release_shards(self, shards: Collection[int]) -> None:
        """Release all deliveries of these shards: from now on they may be taken over, by this
        consumer too, or delivered again. No exchange; acknowledging them still works.
        """

    async def acknowledge(self, tokens: Sequence[str]) -> None:
        """Forget the doorbells for good. Unknown tokens are ignored; may be repeated."""

    def taken_keys(self) -> Mapping[str, str]:
        """The keys of the server that hold something else, as far as calls have met them, and what
        to do about each. Their shards are not read; they are, soon after they are free again.
        """

    async def reply(self, receipts: Sequence[tuple[str, Receipt]]) -> None:
        """Carry each receipt to the waiter at its `reply_to`. Best effort, kept for a while."""

    async def wait_for_receipts(self, reply_to: str, *, wait_s: float) -> Sequence[Receipt]:
        """Take the receipts that arrived for `reply_to`, in order; wait up to `wait_s` if there is
        none.
        """

    async def depth(self) -> QueueDepth:
        """Count over all shards."""

    async def probe(self) -> None:
        """Refuse (`SettingsError`) a server that may evict or is too old; say which setting to
        change.
        """

    async def close(self) -> None:
        """Release connections. Idempotent."""


def shard_of(table_uuid: UUID) -> int:
    """The shard of a table, 0 ≤ shard < `SHARDS`: the same for every version of every party."""
    return table_uuid.int % SHARDS


# --- Leases --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Lease:
    """The owner of a shard. Each new owner has a higher `term` than every owner before."""

    member: str
    term: int


@dataclass(frozen=True, slots=True)
class Member:
    """A committer that shares the shards. `left_s`: until it counts as gone, unless it renews."""

    name: str
    is_leaving: bool
    left_s: float


@dataclass(frozen=True, slots=True)
class Renewal:
    """One renewal of a member. `is_new`: its first, which replaces any earlier process of its name.
    `claim`: shards that it wants if they are free. `release`: shards that it gives up.
    """

    lease_s: float
    is_new: bool = False
    is_leaving: bool = False
    claim: frozenset[int] = frozenset()
    release: frozenset[int] = frozenset()


Standing = Literal["renewed", "new", "displaced"]


@dataclass(frozen=True, slots=True)
class Assignment:
    """The members, sorted by name, and the owner of each shard. `version` changes with either.

    `standing` of the asking member: `new` where the server did not know it, `displaced` where
    another process has taken its name; then it is no member, and a lease of its name is not its.
    """

    members: tuple[Member, ...]
    leases: Mapping[int, Lease]
    version: str
    standing: Standing = "renewed"


class Leases(Protocol):
    """Members of one group, and which of them owns each of `SHARDS` shards. One client: one member.

    An optimisation: two members that both hold themselves for the owner do no harm. Obligations of
    every method: an unreachable server is `QueueUnavailableError`. The server's clock counts. Its
    state may be lost with it, or be old after a failover; terms still rise as long as its clock
    does.
    """

    async def renew(self, renewal: Renewal) -> Assignment:
        """Renew the membership and all its leases for `lease_s` from now; release shards, then
        claim free ones. One exchange, one atomic step.

        A member that has not renewed in time is expired, and all its shards are free. A shard that
        another live member owns is neither claimed nor released. Repeated, it changes nothing.
        """

    async def look(self) -> Assignment:
        """The same answer without being a member; nothing changes. `standing`: `renewed`."""

    async def wait_for_change(self, version: str, *, wait_s: float) -> None:
        """Return as soon as anything but time has changed since this `version`, or after `wait_s`.
        Perhaps sooner. An expired member is no change until another member renews.
        """

    async def leave(self) -> None:
        """Be no member any more; one's shards are free at once. May be repeated."""

    async def close(self) -> None:
        """Release connections. Idempotent."""


# --- World ---------------------------------------------------------------------------------------


class World(Protocol):
    """The one door for time, ids and chance. A simulation replays a seed through it."""

    def now_ms(self) -> int:
        """Wall clock, milliseconds since 1970 UTC. May jump."""

    def monotonic_s(self) -> float:
        """The event loop's clock."""

    async def sleep(self, delay_s: float) -> None:
        """Wait on the event loop's clock."""

    def uuid(self) -> UUID:
        """A fresh random (version 4) uuid."""

    def jitter(self) -> float:
        """Uniform in [0, 1)."""
