"""Selects the groups of a table that have their turn in a round with a budget. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from committer.iceberg.deletes.delete_index import PartitionKey
from workers.compaction.rewrite_groups import FileGroup


@dataclass(slots=True)
class Turns:
    """The turns of one table's partitions. A round has at least one group, and no more bytes than
    its budget beside that one."""

    budget_bytes: int
    _rounds: int = 0
    _served: dict[PartitionKey | None, int] = field(default_factory=dict)

    def choose(self, groups: Sequence[FileGroup]) -> list[FileGroup]:
        """Choose the groups of the next round: of the partitions that had their turn longest ago,
        those with the most files. So a busy partition keeps no other one waiting for ever."""
        self._rounds += 1
        chosen: list[FileGroup] = []
        left_bytes = self.budget_bytes
        for group in sorted(groups, key=self._order):
            if chosen and group.size_bytes > left_bytes:
                break
            chosen.append(group)
            left_bytes -= group.size_bytes
        known = {group.partition for group in groups}
        self._served = {key: at for key, at in self._served.items() if key in known}
        self._served.update((group.partition, self._rounds) for group in chosen)
        return chosen

    def _order(self, group: FileGroup) -> tuple[int, int]:
        return self._served.get(group.partition, 0), -len(group.tasks)
