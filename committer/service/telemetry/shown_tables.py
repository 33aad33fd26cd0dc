"""For how long the numbers of a table are shown once no committer of this process works on it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from uuid import UUID

from committer.ports.queue import shard_of
from committer.ports.world import World
from committer.request.table_identifier import TableIdentifier

# The rate of a table that is written once an hour needs what it counted up from.
AFTER_IDLE_S = 86_400.0
# Long enough for its last numbers to be read once more; its next committer shows its own.
AFTER_LEAVING_S = 300.0


class ShownTables:
    """The tables that this process has worked on, and until when each is shown."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._until_s: dict[tuple[TableIdentifier, UUID], float] = {}

    def ended(self, identifier: TableIdentifier, table_uuid: UUID, *, is_ours: bool) -> None:
        """Note that a table's committer has ended.
        `is_ours`: for want of work alone, so the table is still this process's; else another one
        has it now, or there is none of that name any more.
        """
        self._drop_past()
        age_s = AFTER_IDLE_S if is_ours else AFTER_LEAVING_S
        self._until_s[identifier, table_uuid] = self._world.monotonic_s() + age_s

    def left(self, shards: Collection[int]) -> None:
        """Note that these shards are another's from now on."""
        end_s = self._world.monotonic_s() + AFTER_LEAVING_S
        for key, until_s in self._until_s.items():
            if shard_of(key[1]) in shards:
                self._until_s[key] = min(until_s, end_s)

    def names(self, working: Iterable[TableIdentifier]) -> set[str]:
        """Return the names of all tables to show: those that are worked on, and those that were."""
        self._drop_past()
        return {str(one) for one in working} | {str(one) for one, _ in self._until_s}

    def tables(self) -> Collection[tuple[TableIdentifier, UUID]]:
        """Return the tables that were worked on and are still shown."""
        self._drop_past()
        return tuple(self._until_s)

    def _drop_past(self) -> None:
        now_s = self._world.monotonic_s()
        for key in [key for key, until_s in self._until_s.items() if until_s <= now_s]:
            del self._until_s[key]
