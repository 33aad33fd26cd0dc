"""Random programs of Spark applications on one table, and the rows that they leave. No Spark here.

Each application has partitions of its own, so a dictionary by key says what its rows are after each
step; other rows, which all of them append, are only added. A step that is run again, whole or
after a part of it, leaves what one run leaves: its values do not rest on those before it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cached_property
from typing import Literal

from pyiceberg.transforms import BucketTransform
from pyiceberg.types import LongType as ForeignLong

Kind = Literal[
    "append", "share", "overwrite", "delete", "update", "merge", "upsert", "compact", "read"
]
# The id, owner, day, text and amount.
Row = tuple[int, int, str, str, int]
_WEIGHTS: Mapping[Kind, int] = {
    "append": 4,
    "share": 2,
    "overwrite": 2,
    "delete": 3,
    "update": 3,
    "merge": 4,
    "upsert": 4,
    "compact": 2,
    "read": 2,
}
_KEYS_OF_PARTITION = 6
_PARTITIONS_OF_EACH = 2
_AMOUNT_MAX = 100
_FIRST_DAY = date(2026, 1, 1)
SHARED_OWNER = -1


@dataclass(frozen=True)
class Layout:
    """The table of a seed: its format version, how it is partitioned, and how rows are changed."""

    version: Literal[2, 3]
    partitioned_by: Literal["bucket", "days"]
    modes: Mapping[str, str]
    applications: int

    @classmethod
    def of(cls, seed: int, applications: int) -> Layout:
        chance = random.Random(seed)
        version: Literal[2, 3] = 2 if seed % 2 else 3
        partitioned_by: Literal["bucket", "days"] = "bucket" if seed // 2 % 2 else "days"
        modes = {
            f"write.{command}.mode": chance.choice(["copy-on-write", "merge-on-read"])
            for command in ("delete", "update", "merge")
        }
        return cls(version, partitioned_by, modes, applications)

    @property
    def partitions(self) -> int:
        """The number of partitions; the last one is of the rows that all append."""
        return _PARTITIONS_OF_EACH * self.applications + 1

    @property
    def transform(self) -> str:
        return f"bucket[{self.partitions}]" if self.partitioned_by == "bucket" else "day"

    @property
    def upsert_keys(self) -> list[str]:
        """The key of upserts, which has to determine the partition."""
        return ["id"] if self.partitioned_by == "bucket" else ["id", "day"]

    @cached_property
    def ids(self) -> list[list[int]]:
        """The ids of each partition."""
        found: list[list[int]] = [[] for _ in range(self.partitions)]
        bucket = BucketTransform(self.partitions).transform(ForeignLong())
        at = 0
        while any(len(ids) < _KEYS_OF_PARTITION for ids in found):
            place = bucket(at) if self.partitioned_by == "bucket" else at % self.partitions
            assert place is not None
            if len(found[place]) < _KEYS_OF_PARTITION:
                found[place].append(at)
            at += 1
        return found

    def own_partitions(self, application: int) -> range:
        first = _PARTITIONS_OF_EACH * application
        return range(first, first + _PARTITIONS_OF_EACH)

    def day(self, partition: int) -> str:
        return (_FIRST_DAY + timedelta(days=partition)).isoformat()


@dataclass(frozen=True, slots=True)
class Condition:
    """Chooses rows of one owner, by what is not None."""

    owner: int
    ids: tuple[int, ...] | None = None
    day: str | None = None
    amounts: tuple[int, int] | None = None

    @property
    def sql(self) -> str:
        parts = [f"owner = {self.owner}"]
        if self.ids is not None:
            parts.append(f"id in ({', '.join(map(str, self.ids))})")
        if self.day is not None:
            parts.append(f"day = date '{self.day}'")
        if self.amounts is not None:
            parts.append(f"amount between {self.amounts[0]} and {self.amounts[1]}")
        return " and ".join(parts)

    def matches(self, row: Row) -> bool:
        id_, owner, day, _, amount = row
        return (
            owner == self.owner
            and (self.ids is None or id_ in self.ids)
            and (self.day is None or day == self.day)
            and (self.amounts is None or self.amounts[0] <= amount <= self.amounts[1])
        )


@dataclass(frozen=True, slots=True)
class Step:
    """One operation. `gone`: ids that a merge or an upsert deletes. `rows_after`: the
    application's rows once it is done. `chance`: a number for what the model does not say."""

    number: int
    kind: Kind
    rows_after: tuple[Row, ...]
    rows: tuple[Row, ...] = ()
    gone: frozenset[int] = frozenset()
    condition: Condition | None = None
    text: str = ""
    amount: int = 0
    chance: float = 0.0


@dataclass(slots=True)
class Program:
    """The program of one application. Its steps are the same whenever it is run."""

    seed: int
    application: int
    layout: Layout
    length: int
    rows: dict[int, Row] = field(default_factory=dict)
    shared: list[Row] = field(default_factory=list)

    def steps(self) -> Iterator[Step]:
        """Yield the steps, each with the model as it is after it."""
        chance = random.Random(f"{self.seed}/{self.application}")
        for number in range(self.length):
            [kind] = chance.choices([*_WEIGHTS], [*_WEIGHTS.values()])
            # Without rows there is little to see; at the end they are looked at once more.
            kind = "append" if number == 0 else "read" if number == self.length - 1 else kind
            yield self._step(number, kind, chance)

    def finished(self) -> Program:
        """Return the program after its last step."""
        for _ in self.steps():
            pass
        return self

    def _step(self, number: int, kind: Kind, chance: random.Random) -> Step:
        text, amount = f"{self.application}-{number}", chance.randrange(_AMOUNT_MAX)
        rows: Sequence[Row] = ()
        gone: frozenset[int] = frozenset()
        condition = None
        if kind == "append":
            absent = [key for key in self._keys(chance) if key[0] not in self.rows]
            rows = self._put(absent, text, chance)
        elif kind == "share":
            rows = self._shared(text, chance)
        elif kind == "overwrite":
            rows = self._overwrite(text, chance)
        elif kind == "delete":
            condition = self._condition(chance)
            for row in [row for row in self.rows.values() if condition.matches(row)]:
                del self.rows[row[0]]
        elif kind == "update":
            condition = self._condition(chance)
            for row in [row for row in self.rows.values() if condition.matches(row)]:
                self.rows[row[0]] = (*row[:3], text, amount)
        elif kind in ("merge", "upsert"):
            if kind == "merge" and chance.random() < 0.3:
                condition = Condition(self.application, amounts=(0, chance.randrange(30)))
            rows, gone = self._merge(condition, text, chance)
        return Step(
            number,
            kind,
            tuple(sorted(self.rows.values())),
            tuple(rows),
            gone,
            condition,
            text,
            amount,
            chance.random(),
        )

    def _all_keys(self) -> list[tuple[int, int]]:
        """Return all keys of the application, with their partitions."""
        layout = self.layout
        own = layout.own_partitions(self.application)
        return [(id_, partition) for partition in own for id_ in layout.ids[partition]]

    def _keys(self, chance: random.Random) -> list[tuple[int, int]]:
        keys = self._all_keys()
        return chance.sample(keys, chance.randrange(1, len(keys)))

    def _put(self, keys: Sequence[tuple[int, int]], text: str, chance: random.Random) -> list[Row]:
        rows = [
            (id_, self.application, self.layout.day(place), text, chance.randrange(_AMOUNT_MAX))
            for id_, place in keys
        ]
        self.rows |= {row[0]: row for row in rows}
        return rows

    def _shared(self, text: str, chance: random.Random) -> list[Row]:
        last = self.layout.partitions - 1
        ids = chance.sample(self.layout.ids[last], 2)
        rows = [(id_, SHARED_OWNER, self.layout.day(last), text, 0) for id_ in ids]
        self.shared += rows
        return rows

    def _overwrite(self, text: str, chance: random.Random) -> list[Row]:
        """Replace one partition, or both, by rows that are in them."""
        own = self.layout.own_partitions(self.application)
        places = chance.sample(own, chance.randrange(1, len(own) + 1))
        kept = [key for key in self._all_keys() if key[1] in places]
        for id_, _ in kept:
            self.rows.pop(id_, None)
        chosen = [chance.choice([key for key in kept if key[1] == place]) for place in places]
        chosen += [key for key in kept if key not in chosen and chance.random() < 0.5]
        return self._put(chosen, text, chance)

    def _condition(self, chance: random.Random) -> Condition:
        how = chance.randrange(4)
        low = chance.randrange(_AMOUNT_MAX)
        ids = tuple(id_ for id_, _ in self._keys(chance)[:4])
        day = self.layout.day(chance.choice(self.layout.own_partitions(self.application)))
        amounts = (low, low + chance.randrange(40))
        return (
            Condition(self.application, ids=ids),
            Condition(self.application, day=day),
            Condition(self.application, amounts=amounts),
            Condition(self.application, day=day, amounts=amounts),
        )[how]

    def _merge(
        self, condition: Condition | None, text: str, chance: random.Random
    ) -> tuple[list[Row], frozenset[int]]:
        """Put rows, delete some of their keys, and delete other rows by the condition."""
        keys = self._keys(chance)
        named = {id_ for id_, _ in keys}
        for row in list(self.rows.values()):
            if condition is not None and row[0] not in named and condition.matches(row):
                del self.rows[row[0]]
        rows = self._put(keys, text, chance)
        gone = frozenset(id_ for id_ in named if chance.random() < 0.25)
        for id_ in gone:
            del self.rows[id_]
        return rows, gone
