"""Random programs of SQL for Iceberg Java: tables that evolve, lose rows and gain files.

Spark gives columns no defaults: the fixtures have these.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

# Types by name: literals, and what they may be promoted to.
_TYPES: dict[str, tuple[tuple[str, ...], str | None]] = {
    "int": (("1", "-7", "2147483647"), "bigint"),
    "bigint": (("5", "-9000000000"), None),
    "float": (("float('1.5')", "float('NaN')", "float('-0.0')"), "double"),
    "double": (("double('0.1')", "double('NaN')", "double('-0.0')"), None),
    "decimal(9,2)": (("12.34", "-0.01"), "decimal(20,2)"),
    "decimal(20,2)": (("123456789012.34",), None),
    "string": (("'a'", "'é'", "''"), None),
    "date": (("date '1969-12-31'", "date '2024-02-29'"), None),
    "boolean": (("true", "false"), None),
    "binary": (("X'00ff'", "X''"), None),
    "struct<x:int,y:string>": (
        ("named_struct('x', 1, 'y', 'b')", "named_struct('x', null, 'y', 'c')"),
        None,
    ),
    "array<int>": (("array(1, null)", "cast(array() as array<int>)"), None),
    "map<string,bigint>": (("map('k', 1L)", "map('n', null)"), None),
}


@dataclass(slots=True)
class RandomTable:
    """One table and what is known of it."""

    name: str
    chance: random.Random
    version: int
    columns: dict[str, str] = field(default_factory=dict)
    is_partitioned: bool = False
    rows: int = 0
    names: int = 0

    def create(self, file_format: str) -> str:
        self.columns = {"id": "int", "name": "string"}
        for _ in range(3):
            self._new_column()
        columns = ", ".join(f"{name} {kind}" for name, kind in self.columns.items())
        by = self.chance.choice(("", "PARTITIONED BY (bucket(2, id))", "PARTITIONED BY (name)"))
        mode = self.chance.choice(("merge-on-read", "merge-on-read", "copy-on-write"))
        modes = ", ".join(f"'write.{one}.mode'='{mode}'" for one in ("delete", "update", "merge"))
        granularity = self.chance.choice(("file", "partition"))
        return (
            f"CREATE TABLE {self.name} ({columns}) USING iceberg {by} TBLPROPERTIES"
            f" ('format-version'='{self.version}', 'write.format.default'='{file_format}', {modes},"
            f" 'write.delete.granularity'='{granularity}')"
        )

    def steps(self, count: int) -> Iterator[str]:
        yield self._insert()
        for _ in range(count):
            yield self.chance.choice(
                (self._insert, self._insert, self._delete, self._delete, self._update, self._alter)
            )()
        yield self._insert()

    def _new_column(self) -> tuple[str, str]:
        self.names += 1
        name, kind = f"c{self.names}", self.chance.choice(list(_TYPES))
        self.columns[name] = kind
        return name, kind

    def _literal(self, kind: str) -> str:
        return self.chance.choice((*_TYPES[kind][0], "null"))

    def _insert(self) -> str:
        rows = [f"({', '.join(self._row())})" for _ in range(self.chance.randrange(1, 8))]
        return f"INSERT INTO {self.name} ({', '.join(self.columns)}) VALUES {', '.join(rows)}"

    def _row(self) -> Iterator[str]:
        self.rows += 1
        for name, kind in self.columns.items():
            match name:
                case "id":
                    yield str(self.rows)
                case "name":
                    yield self.chance.choice(("'a'", "'b'", "'bb'", "null"))
                case _:
                    yield f"cast({self._literal(kind)} as {kind})"

    def _delete(self) -> str:
        return f"DELETE FROM {self.name} WHERE {self._where()}"

    def _update(self) -> str:
        return f"UPDATE {self.name} SET name = 'u{self.rows}' WHERE {self._where()}"

    def _where(self) -> str:
        divisor = self.chance.randrange(3, 6)
        rest = self.chance.randrange(divisor)
        return f"id % {divisor} = {rest}"

    def _alter(self) -> str:
        own = [name for name in self.columns if name not in ("id", "name")]
        wide = [name for name in own if _TYPES[self.columns[name]][1] is not None]
        start = f"ALTER TABLE {self.name}"
        match self.chance.randrange(5):
            case 0 if own:
                name = self.chance.choice(own)
                kind = self.columns.pop(name)
                self.names += 1
                self.columns[f"c{self.names}"] = kind
                return f"{start} RENAME COLUMN {name} TO c{self.names}"
            case 1 if wide:
                name = self.chance.choice(wide)
                self.columns[name] = _TYPES[self.columns[name]][1] or ""
                return f"{start} ALTER COLUMN {name} TYPE {self.columns[name]}"
            case 2 if len(own) > 2:
                name = self.chance.choice(own)
                del self.columns[name]
                return f"{start} DROP COLUMN {name}"
            case 3 if not self.is_partitioned:
                self.is_partitioned = True
                return f"{start} ADD PARTITION FIELD truncate(1, name) AS first_letter"
        name, kind = self._new_column()
        return f"{start} ADD COLUMN {name} {kind}"
