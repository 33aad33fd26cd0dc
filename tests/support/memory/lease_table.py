"""The state of a lease server, and its one rule: the model of the script in `redis_leases`.

Pure: the time is an argument. Nothing of clients, waiting or outages lives here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from committer.ports.leases import Assignment, Lease, Member, Renewal, Standing

_NOBODY = UUID(int=0)


@dataclass(frozen=True, slots=True)
class _Registered:
    """A process that is a member. `expires_ms`: by the server's clock."""

    name: str
    is_leaving: bool
    expires_ms: int
    status_url: str | None = None


@dataclass(frozen=True, slots=True)
class _Tenure:
    """The last lease of a shard: in force while `process` is a member."""

    process: UUID
    term: int


@dataclass(slots=True)
class LeaseTable:
    """Members by process, and the last lease of each shard. A process is one incarnation of a
    member: after a restart the name is the same, and the process another.

    `version` rises with every change; it is not lost with the rest, as a server's clock is not.
    """

    version: int = 0
    _members: dict[UUID, _Registered] = field(default_factory=dict)
    _tenures: dict[int, _Tenure] = field(default_factory=dict)
    # As they were shown last, at which version and with which live processes.
    _asked: tuple[int, tuple[UUID, ...]] | None = None
    _leases: Mapping[int, Lease] = field(default_factory=dict)

    def renew(self, process: UUID, name: str, renewal: Renewal, *, now_ms: int) -> Assignment:
        """See the port."""
        is_changed = self._drop_lapsed(now_ms)
        standing: Standing = "renewed" if process in self._members else "new"
        namesakes = [p for p, one in self._members.items() if one.name == name and p != process]
        if namesakes and not renewal.is_new:
            self.version += is_changed
            return self._seen(now_ms, "displaced")
        for namesake in namesakes:
            del self._members[namesake]
        expires_ms = now_ms + round(renewal.lease_s * 1_000)
        before = self._members.get(process)
        after = _Registered(name, renewal.is_leaving, expires_ms, renewal.status_url)
        is_changed |= before is None or before.is_leaving != after.is_leaving
        self._members[process] = after
        is_changed |= self._release(process, renewal.release)
        is_changed |= self._claim(process, renewal.claim, now_ms)
        self.version += is_changed
        return self._seen(now_ms, standing)

    def look(self, *, now_ms: int) -> Assignment:
        """See the port."""
        return self._seen(now_ms, "renewed")

    def leave(self, process: UUID) -> None:
        """See the port."""
        if self._members.pop(process, None) is not None:
            self.version += 1

    def lose(self) -> None:
        """Forget everything, as FLUSHALL does."""
        self._members, self._tenures, self._asked = {}, {}, None

    def _drop_lapsed(self, now_ms: int) -> bool:
        lapsed = [p for p, one in self._members.items() if one.expires_ms <= now_ms]
        for process in lapsed:
            del self._members[process]
        return bool(lapsed)

    def _release(self, process: UUID, shards: Iterable[int]) -> bool:
        """Release shards of a process. The term is kept, so that the next one is higher."""
        is_changed = False
        for shard in shards:
            tenure = self._tenures.get(shard)
            if tenure is not None and tenure.process == process:
                self._tenures[shard] = _Tenure(_NOBODY, tenure.term)
                is_changed = True
        return is_changed

    def _claim(self, process: UUID, shards: Iterable[int], now_ms: int) -> bool:
        """Claim shards. A term is the time if that is higher, so it rises after a loss too."""
        is_changed = False
        for shard in shards:
            tenure = self._tenures.get(shard, _Tenure(_NOBODY, 0))
            if tenure.process not in self._members:
                self._tenures[shard] = _Tenure(process, max(tenure.term + 1, now_ms))
                is_changed = True
        return is_changed

    def _seen(self, now_ms: int, standing: Standing) -> Assignment:
        live = {p: one for p, one in self._members.items() if one.expires_ms > now_ms}
        return Assignment(
            members=tuple(
                sorted(
                    (
                        Member(
                            one.name,
                            one.is_leaving,
                            (one.expires_ms - now_ms) / 1_000,
                            status_url=one.status_url,
                        )
                        for one in live.values()
                    ),
                    key=lambda member: member.name,
                )
            ),
            leases=self._in_force(tuple(live)),
            version=str(self.version),
            standing=standing,
        )

    def _in_force(self, live: tuple[UUID, ...]) -> Mapping[int, Lease]:
        """Return the leases of live processes, cached: most renewals change none."""
        asked = self.version, live
        if asked != self._asked:
            self._asked = asked
            names = {process: self._members[process].name for process in live}
            held = (
                (shard, one.term, names.get(one.process)) for shard, one in self._tenures.items()
            )
            self._leases = {
                shard: Lease(name, term) for shard, term, name in sorted(held) if name is not None
            }
        return self._leases
