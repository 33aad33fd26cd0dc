"""Assigns shards to committers, and plans the next step of one committer. Pure.

Rendezvous hashing: every member ranks the others for a shard alike, from their names alone. A
member that joins or leaves moves its own share and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

from committer.ports.leases import Assignment
from committer.ports.queue import ALL_SHARDS, SHARDS

# A hand-over costs each table of the shard a pause and a reload: not of all tables at a time.
MOVES_MAX = 8
# Of so many members and shards: each renewal asks for all of them again.
_WEIGHTS_MAX = 64 * SHARDS
_MEMBERSHIPS_MAX = 64


@dataclass(frozen=True, slots=True)
class Step:
    """The shards that a member owns by an assignment, and those to claim and to release next."""

    owned: frozenset[int]
    claim: frozenset[int] = frozenset()
    give_up: frozenset[int] = frozenset()


def ranked(names: Iterable[str], shard: int) -> list[str]:
    """Rank the names for a shard: the one that should own it first.
    Equal for all who know the same names."""
    return sorted(names, key=lambda name: (_weight(name, shard), name))


def next_step(
    seen: Assignment,
    me: str,
    *,
    busy: frozenset[int] = frozenset(),
    only: frozenset[int] | None = None,
    must_give_up: bool = False,
) -> Step:
    """Decide a member's next step. `busy`: shards that it is handing over already. `only`: claim
    nothing else, where others may be about to claim the rest again. `must_give_up`: it has been cut
    off for so long that another member should work.

    Shards belong to the members that can work. Where all are cut off nothing moves: a free shard
    is claimed as ever, for the first that works again.
    """
    if seen.standing in ("displaced", "foreign"):
        return Step(frozenset())
    staying = [member for member in seen.members if not member.is_leaving]
    able = [member.name for member in staying if not member.is_cut_off]
    wanted = _wanted(tuple(able or [member.name for member in staying]), me)
    mine = frozenset(shard for shard, lease in seen.leases.items() if lease.member == me)
    free = wanted.difference(seen.leases, busy)
    others = sorted(mine - wanted - busy)
    if all(member.name != me for member in staying):
        moves_max = len(others)
    elif me not in able:
        moves_max = len(others) if able and must_give_up else 0
    else:
        moves_max = max(0, MOVES_MAX - len(busy))
    return Step(
        owned=mine - busy,
        claim=frozenset(free if only is None else free & only),
        give_up=frozenset(others[:moves_max]),
    )


@lru_cache(maxsize=_MEMBERSHIPS_MAX)
def _wanted(staying: tuple[str, ...], me: str) -> frozenset[int]:
    """Return the shards that the member `me` should own."""
    return frozenset(shard for shard in ALL_SHARDS if ranked(staying, shard)[:1] == [me])


@lru_cache(maxsize=_WEIGHTS_MAX)
def _weight(name: str, shard: int) -> bytes:
    return blake2b(f"{shard}/{name}".encode(), digest_size=8).digest()
