"""The state of a lease server, and its one rule: the model of the script in `redis_leases`.

Pure: the time is an argument. Nothing of clients, waiting or outages lives here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from uuid import UUID

from committer.ports.installation import Installation
from committer.ports.leases import Assignment, Lease, Member, Renewal, Standing

_NOBODY = UUID(int=0)


class _State(Enum):
    """A refused process is registered, and no member."""

    WORKING = 0
    LEAVING = 1
    CUT_OFF = 2
    REFUSED = 3

    @classmethod
    def for_renewal(cls, renewal: Renewal) -> _State:
        """Return the state that a member says it is in."""
        if renewal.is_leaving:
            return cls.LEAVING
        return cls.CUT_OFF if renewal.is_cut_off else cls.WORKING


@dataclass(frozen=True, slots=True)
class _Registered:
    """A process that is a member, or wants to be. `expires_ms`: by the server's clock."""

    name: str
    installation: Installation
    state: _State
    expires_ms: int
    status_url: str | None = None

    @property
    def is_member(self) -> bool:
        return self.state is not _State.REFUSED

    def shown(self, now_ms: int) -> Member:
        """Return it as the port shows it."""
        return Member(
            self.name,
            is_leaving=self.state is _State.LEAVING,
            left_s=(self.expires_ms - now_ms) / 1_000,
            is_cut_off=self.state is _State.CUT_OFF,
            installation=self.installation,
            status_url=self.status_url,
        )


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

    def renew(
        self,
        process: UUID,
        name: str,
        installation: Installation,
        renewal: Renewal,
        *,
        now_ms: int,
    ) -> Assignment:
        """See the port."""
        is_changed = self._drop_lapsed(now_ms)
        is_member = process in self._members and self._members[process].is_member
        own = _Registered(
            name,
            installation,
            _State.for_renewal(renewal),
            now_ms + round(renewal.lease_s * 1_000),
            renewal.status_url,
        )
        others = {p: one for p, one in self._members.items() if p != process}
        if not is_member and any(
            one.is_member and one.installation != installation for one in others.values()
        ):
            is_changed |= self._register(process, replace(own, state=_State.REFUSED))
            self.version += is_changed
            return self._seen(now_ms, "foreign")
        namesakes = [
            p for p, one in others.items() if (one.name, one.installation) == (name, installation)
        ]
        if any(others[p].is_member for p in namesakes) and not renewal.is_new:
            self.version += is_changed
            return self._seen(now_ms, "displaced")
        for namesake in namesakes:
            del self._members[namesake]
            is_changed = True
        is_changed |= self._register(process, own)
        is_changed |= self._release(process, renewal.release)
        is_changed |= self._claim(process, renewal.claim, now_ms)
        self.version += is_changed
        return self._seen(now_ms, "renewed" if is_member else "new")

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

    def _register(self, process: UUID, own: _Registered) -> bool:
        """Renew the record of a process. Return whether more than its time has changed."""
        before = self._members.get(process)
        self._members[process] = own
        own_before = before and replace(
            before, expires_ms=own.expires_ms, status_url=own.status_url
        )
        return own_before != own

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
            owner = self._members.get(tenure.process)
            if owner is None or not owner.is_member:
                self._tenures[shard] = _Tenure(process, max(tenure.term + 1, now_ms))
                is_changed = True
        return is_changed

    def _seen(self, now_ms: int, standing: Standing) -> Assignment:
        registered = [(p, one) for p, one in self._members.items() if one.expires_ms > now_ms]
        live = {p: one for p, one in registered if one.is_member}
        refused = [one for _, one in registered if not one.is_member]
        return Assignment(
            members=_by_name(live.values(), now_ms),
            refused=_by_name(refused, now_ms),
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


def _by_name(registered: Iterable[_Registered], now_ms: int) -> tuple[Member, ...]:
    return tuple(sorted((one.shown(now_ms) for one in registered), key=lambda member: member.name))
