"""The conformance suite on a folder that is laid out like the fixtures.

`java/<table>/expected.json` beside the files of the table, `vectors/<name>.json`; answers to
operations, `*.txt` and `*.jsonl`, in the folder itself or in `operations/`. Every file and every
key in them is checked; one that the suite does not know is a failure, never left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.conformance.check import Check
from tests.conformance.operations.checks import operation_checks, operation_files
from tests.conformance.table import Table
from tests.conformance.table_checks import table_checks
from tests.conformance.vector_checks import vector_checks


@dataclass(frozen=True, slots=True)
class Group:
    """One table, one file of vectors, or one of answers to operations."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    def checks(self) -> Iterator[Check]:
        if self.path.suffix == ".json":
            return vector_checks(self.path)
        if self.path.suffix in (".txt", ".jsonl"):
            return operation_checks(self.path)
        return table_checks(Table(self.path))


def groups(folder: Path) -> list[Group]:
    """Return all groups of a folder, without hidden files.

    Errors: `FileNotFoundError` if there are none.
    """
    tables = [path for path in sorted((folder / "java").glob("*")) if path.is_dir()]
    files = sorted((folder / "vectors").glob("*.json"))
    operations = [*operation_files(folder), *operation_files(folder / "operations")]
    if not tables and not files and not operations:
        raise FileNotFoundError(
            f"{folder}: neither java/<table>/expected.json nor vectors/*.json nor operations/*.txt"
        )
    return [Group(path) for path in (*tables, *files, *operations)]
