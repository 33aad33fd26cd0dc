"""The rows that a table has to have: of each of its branches and tags, of snapshots, and staged."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from committer.ledger_entry import MAIN
from tests.integration.changing_state import Row, value_of

REGIONS = ("n", "s", "w")
OWN_COLUMNS: Mapping[int, str] = {1: "id", 2: "region", 3: "text"}
# A value of a long column fits into no int.
_BASE: Mapping[str, int] = {"int": 10, "long": 2**40}
Content = dict[int, Row]


@dataclass(frozen=True, slots=True)
class Staged:
    """Rows of an append that no ref names yet."""

    wap_id: str
    snapshot_id: int
    rows: Content


@dataclass(slots=True)
class Columns:
    """The columns of the table in their order, by their field ids, and the types of those that were
    added.
    """

    names: dict[int, str] = field(default_factory=lambda: dict(OWN_COLUMNS))
    types: dict[int, str] = field(default_factory=dict)
    last_id: int = max(OWN_COLUMNS)

    @property
    def added(self) -> list[int]:
        return [each for each in self.names if each not in OWN_COLUMNS]

    def add(self, name: str, kind: str) -> None:
        self.last_id += 1
        self.names[self.last_id] = name
        self.types[self.last_id] = kind

    def move(self, field_id: int, place: int) -> None:
        """Let a column stand behind so many others."""
        order = [each for each in self.names if each != field_id]
        order.insert(place, field_id)
        self.names = {each: self.names[each] for each in order}

    def values(self, id: int) -> Row:
        """Return the values of a new row in the columns that were added."""
        return tuple(self._value(each, id) for each in range(4, self.last_id + 1))

    def _value(self, field_id: int, id: int) -> object:
        if field_id not in self.names:
            return None
        kind = self.types[field_id]
        return f"{kind} of {id}" if kind == "string" else id + _BASE[kind]


@dataclass(slots=True)
class Model:
    """`refs`: the rows by branch and tag. `snapshots`: those that main has had. `staged`: not
    picked yet."""

    chance: random.Random
    columns: Columns = field(default_factory=Columns)
    refs: dict[str, Content] = field(default_factory=lambda: {MAIN: {}})
    snapshots: dict[int, Content] = field(default_factory=dict)
    staged: list[Staged] = field(default_factory=list)
    next_id: int = 0

    @property
    def main(self) -> Content:
        return self.refs[MAIN]

    @main.setter
    def main(self, content: Mapping[int, Row]) -> None:
        self.refs[MAIN] = dict(content)

    def table(self, ref: str) -> list[tuple[object, ...]]:
        """Return the rows of a ref as readers show them, the id first: of main with all columns, of
        others with those that each of their schemas has."""
        shown = self.columns.names if ref == MAIN else OWN_COLUMNS
        field_ids = [each for each in shown if each != 1]
        content = self.refs[ref]
        return [
            (id, *(value_of(content[id], each) for each in field_ids)) for id in sorted(content)
        ]

    # --- Rows ------------------------------------------------------------------------------------

    def new_rows(self, region: str | None = None, count: int = 0) -> Content:
        count = count or self.chance.randint(1, 6)
        first, self.next_id = self.next_id, self.next_id + count
        return {
            each: (region or self.chance.choice(REGIONS), f"t{each}", *self.columns.values(each))
            for each in range(first, self.next_id)
        }

    def some_ids(self, region: str | None = None, *, ref: str = MAIN) -> list[int]:
        known = [each for each, row in self.refs[ref].items() if region in (None, row[0])]
        return self.chance.sample(known, min(len(known), self.chance.randint(1, 4)))

    def changed(self, ids: Iterable[int]) -> Content:
        return {
            each: (self.main[each][0], f"u{self.chance.randrange(1000)}", *self.main[each][2:])
            for each in ids
        }

    def without(self, ids: Iterable[int], *, ref: str = MAIN) -> Content:
        gone = set(ids)
        return {each: row for each, row in self.refs[ref].items() if each not in gone}

    def of_region(self, region: str) -> Content:
        return {each: row for each, row in self.main.items() if row[0] == region}

    def without_region(self, region: str) -> Content:
        return {each: row for each, row in self.main.items() if row[0] != region}
