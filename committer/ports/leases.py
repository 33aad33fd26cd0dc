"""The port `Leases`: which committer owns which shard. Each docstring is a contract."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from committer.ports.installation import Installation


@dataclass(frozen=True, slots=True)
class Lease:
    """The owner of a shard. Each new owner has a higher `term` than every owner before."""

    member: str
    term: int


@dataclass(frozen=True, slots=True)
class Member:
    """A committer that shares the shards. `left_s`: until it expires, unless it renews.
    `is_cut_off`: its storage, inbox or catalog does not answer it. `installation`: what it serves.
    `status_url`: where others reach its `/status`; None if it has not said so.
    """

    name: str
    is_leaving: bool
    left_s: float
    is_cut_off: bool = False
    installation: Installation | None = None
    status_url: str | None = None


@dataclass(frozen=True, slots=True)
class Renewal:
    """One renewal of a member. `is_new`: its first, which replaces any earlier process of its name.
    `is_cut_off`: as of `Member`. `claim`: shards that it wants if they are free. `release`: shards
    that it gives up. `status_url`: as of `Member`.
    """

    lease_s: float
    is_new: bool = False
    is_leaving: bool = False
    is_cut_off: bool = False
    claim: frozenset[int] = frozenset()
    release: frozenset[int] = frozenset()
    status_url: str | None = None


Standing = Literal["renewed", "new", "displaced", "foreign"]


@dataclass(frozen=True, slots=True)
class Assignment:
    """The members, sorted by name, and the owner of each shard. `version` changes with either.

    `standing` of the asking member: `new` where the server did not know it, `displaced` where
    another process has taken its name; then it is no member, and a lease of its name is not its.
    `foreign` where the members are of another installation; then it is `refused`, and no member.

    `refused`: processes of other installations that want to be members.
    """

    members: tuple[Member, ...]
    leases: Mapping[int, Lease]
    version: str
    standing: Standing = "renewed"
    refused: tuple[Member, ...] = ()


class Leases(Protocol):
    """Members of one group, and which of them owns each of `SHARDS` shards. One client: one member.

    An optimization: two members that both hold themselves for the owner do no harm. Obligations of
    every method: an unreachable server is `QueueUnavailableError`. The server's clock counts. Its
    state may be lost with it, or be old after a failover; terms still rise as long as its clock
    does.
    """

    async def renew(self, renewal: Renewal) -> Assignment:
        """Renew the membership and all its leases for `lease_s` from now; release shards, then
        claim free ones. One exchange, one atomic step.

        Members are of one installation: a process of another one is refused until they have gone.

        A member that has not renewed in time is expired, and all its shards are free. A shard that
        another live member owns is neither claimed nor released. Repeated, it changes nothing.
        """

    async def look(self) -> Assignment:
        """Return the assignment without being a member; nothing changes. `standing`: `renewed`."""

    async def wait_for_change(self, version: str, *, wait_s: float) -> None:
        """Return as soon as anything but time has changed since this `version`, or after `wait_s`.
        Perhaps sooner. An expired member is no change until another member renews.
        """

    async def leave(self) -> None:
        """Leave the members; this one's shards are free at once. May be repeated."""

    async def close(self) -> None:
        """Release connections. Idempotent."""
