"""The clauses of a merge: which rows each is for, and what becomes of them. Values only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from committer.errors import SettingsError

Side = Literal["matched", "not_matched", "not_matched_by_source"]
Action = Literal["update", "delete", "insert"]


@dataclass(frozen=True, slots=True)
class Clause:
    """`assigned`: the values of an update or insert; None: all of the source's columns."""

    side: Side
    action: Action
    condition: Any = None
    assigned: Mapping[str, Any] | None = None

    @property
    def takes_all(self) -> bool:
        """Whether it takes all columns of the source."""
        return self.assigned is None and self.action != "delete"


@dataclass(frozen=True, slots=True)
class Clauses:
    """The clauses of a merge, in the order in which they are tried."""

    all: tuple[Clause, ...]

    def of(self, side: Side) -> tuple[Clause, ...]:
        return tuple(clause for clause in self.all if clause.side == side)

    def check(self) -> None:
        """Require a clause, and that each may be asked. Errors: `SettingsError`."""
        if not self.all:
            raise SettingsError("merge: expected a clause, such as `when_matched_update_all()`")
        for side in ("matched", "not_matched", "not_matched_by_source"):
            _check_order(self.of(side))

    @property
    def join(self) -> str:
        """The join, of the table with the source, that yields the rows of all clauses."""
        return {
            (False, False): "inner",
            (True, False): "right",
            (False, True): "left",
            (True, True): "full",
        }[bool(self.of("not_matched")), bool(self.of("not_matched_by_source"))]

    @property
    def take_all(self) -> bool:
        """Whether a clause takes all columns of the source."""
        return any(clause.takes_all for clause in self.all)

    @property
    def only_inserts(self) -> bool:
        return not self.of("matched") and not self.of("not_matched_by_source")

    @property
    def matches_once(self) -> bool:
        """Whether a row that several rows of the source match is an error. Source: Spark,
        `RewriteMergeIntoTable`: not where each is deleted anyway."""
        matched = self.of("matched")
        is_deleted = [c.action == "delete" and c.condition is None for c in matched] == [True]
        return bool(matched) and not is_deleted


def _check_order(clauses: Sequence[Clause]) -> None:
    for clause in clauses[:-1]:
        if clause.condition is None:
            raise SettingsError(
                f"merge: a clause of `when_{clause.side}` without a condition hides those behind"
                " it: only the last may have none"
            )
