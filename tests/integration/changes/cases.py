"""Tables of every kind, and the same changes by Frazil and by Iceberg's runtime."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from frazil.spark import delete_from, merge_into, update
from tests.integration.changes.harness import ChangesHarness
from tests.support.integration.real_harness import CATALOG

COLUMNS = "id INT, region STRING, amount BIGINT, price DECIMAL(9,2), at DATE, place STRUCT<x: INT>"
ROWS = (
    "(1, 'east', 10, 1.50, DATE'2024-01-01', named_struct('x', 1)),"
    "(2, 'west', 20, NULL, DATE'2024-01-02', NULL),"
    "(3, 'east', 30, 3.50, DATE'2024-01-01', named_struct('x', 3)),"
    "(4, NULL, 40, 4.50, NULL, named_struct('x', NULL))",
    "(5, 'east', 50, 5.50, DATE'2024-01-03', named_struct('x', 5)),"
    "(6, 'west', 60, 6.50, DATE'2024-01-02', named_struct('x', 6)),"
    "(7, 'north', 70, 7.50, DATE'2024-01-04', named_struct('x', 7))",
)
SOURCE = [(1, "east", 100), (3, "east", -1), (5, "west", 500), (8, "south", 800), (9, None, 900)]
# By the merge, after row 3 was deleted.
INSERTED = (3, 8)
PARTITIONS = ("", "region", "bucket(3, id)", "days(at)", "truncate(1, region)")
MODES = ("copy-on-write", "merge-on-read")


@dataclass(frozen=True, slots=True)
class Case:
    """A kind of table. Iceberg fails to merge on read in version 1."""

    version: int
    mode: str
    partitioned_by: str
    format: str = "parquet"

    def __str__(self) -> str:
        where = self.partitioned_by.partition("(")[0] or "whole"
        name = f"v{self.version}-{self.mode.partition('-')[0]}-{where}"
        return name if self.format == "parquet" else f"{name}-{self.format}"


def all_cases() -> Iterator[Case]:
    for version in (1, 2, 3):
        for mode in MODES[: 1 if version == 1 else 2]:
            for partitioned_by in PARTITIONS:
                yield Case(version, mode, partitioned_by)


# The others are in `make test-servers`.
FEW = (Case(2, "merge-on-read", "days(at)"),)


# Each format of data files and position delete files.
OF_FORMATS = tuple(
    Case(version, mode, by, name)
    for name in ("avro", "orc")
    for version, mode, by in ((2, "merge-on-read", "region"), (3, "copy-on-write", ""))
)


def create_pair(harness: ChangesHarness, case: Case) -> tuple[str, str]:
    """Create two equal tables: one for Frazil's changes, and one for Iceberg's."""
    stem = str(case).replace("-", "_")
    names = f"pairs.{stem}_frazil", f"pairs.{stem}_java"
    for name in names:
        modes = {f"write_{each}_mode": case.mode for each in ("delete", "update", "merge")}
        properties = {**modes, "write_format_default": case.format}
        harness.create(
            name, COLUMNS, partitioned_by=case.partitioned_by, version=case.version, **properties
        )
        for rows in ROWS:
            harness.insert(name, rows)
    return names


# --- The changes, as both say them ---------------------------------------------------------------


def delete_by_frazil(harness: ChangesHarness, table: str) -> None:
    delete_from(table, "amount > 25 and price < 5", spark=harness.spark)


def delete_by_java(harness: ChangesHarness, table: str) -> None:
    harness.sql(f"DELETE FROM {CATALOG}.{table} WHERE amount > 25 AND price < 5")


def update_by_frazil(harness: ChangesHarness, table: str) -> None:
    assigned = {"amount": "amount + 1", "region": "'west'", "place.x": "id * 10"}
    update(table, assigned, "id in (1, 2)", spark=harness.spark)


def update_by_java(harness: ChangesHarness, table: str) -> None:
    harness.sql(
        f"UPDATE {CATALOG}.{table} SET amount = amount + 1, region = 'west', place.x = id * 10"
        " WHERE id IN (1, 2)"
    )


def merge_by_frazil(harness: ChangesHarness, table: str) -> None:
    source = harness.frame(SOURCE, "id int, region string, amount bigint")
    (
        merge_into(table, source, "target.id = source.id")
        .when_matched_delete("source.amount < 0")
        .when_matched_update(
            set={"amount": "target.amount + source.amount", "region": "source.region"}
        )
        .when_not_matched_insert(
            "source.id < 9",
            values={"id": "source.id", "region": "source.region", "at": "DATE'2024-01-01'"},
        )
        .when_not_matched_by_source_update("target.id = 7", set={"amount": "0"})
        .when_not_matched_by_source_delete("target.region = 'west'")
        .execute()
    )


def merge_by_java(harness: ChangesHarness, table: str) -> None:
    source = harness.frame(SOURCE, "id int, region string, amount bigint")
    source.createOrReplaceTempView("merge_source")
    harness.sql(
        f"MERGE INTO {CATALOG}.{table} target USING merge_source source ON target.id = source.id"
        " WHEN MATCHED AND source.amount < 0 THEN DELETE"
        " WHEN MATCHED THEN UPDATE SET amount = target.amount + source.amount,"
        " region = source.region"
        " WHEN NOT MATCHED AND source.id < 9 THEN INSERT (id, region, at)"
        " VALUES (source.id, source.region, DATE'2024-01-01')"
        " WHEN NOT MATCHED BY SOURCE AND target.id = 7 THEN UPDATE SET amount = 0"
        " WHEN NOT MATCHED BY SOURCE AND target.region = 'west' THEN DELETE"
    )


CHANGES = (
    (update_by_frazil, update_by_java),
    (delete_by_frazil, delete_by_java),
    (merge_by_frazil, merge_by_java),
)
