"""The names of `committer.iceberg`: there, typed, and free of everything that is not the format."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import committer.iceberg
from committer import iceberg
from committer.iceberg.schema import Schema

SOURCE = Path(committer.iceberg.__file__)

# What a user of another Iceberg library asks for without looking it up.
GUESSED = (
    "TableMetadata",
    "Schema",
    "NestedField",
    "StructType",
    "ListType",
    "MapType",
    "PartitionSpec",
    "PartitionField",
    "SortOrder",
    "SortField",
    "Snapshot",
    "SnapshotRef",
    "DataFile",
    "DataFileContent",
    "ManifestFile",
    "ManifestContent",
    "ManifestEntry",
    "ManifestEntryStatus",
    "StatisticsFile",
    "BucketTransform",
    "IdentityTransform",
    "And",
    "EqualTo",
    "In",
    "NameMapping",
    "FileScanTask",
    "DeleteIndex",
)

# Nothing but the standard library, the format and what it names may be imported.
BARE_PROCESS = """
import sys

ALLOWED = {"committer", "orjson", "mmh3", "zstandard", "pyroaring"}
FORMAT = ("committer.iceberg", "committer.errors")


class OnlyTheFormat:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top == "committer" and name != top and not name.startswith(FORMAT):
            raise ImportError(f"{name} is not the format")
        if top not in ALLOWED and top.lstrip("_") not in sys.stdlib_module_names:
            if top not in sys.stdlib_module_names:
                raise ImportError(f"{name} is not allowed here")
        return None


sys.meta_path.insert(0, OnlyTheFormat())
import committer.iceberg

assert "committer.iceberg.schema" not in sys.modules, "names are imported when asked for"
for name in committer.iceberg.__all__:
    getattr(committer.iceberg, name)
print(len(committer.iceberg.__all__))
"""


def test_every_name_is_importable_where_only_the_format_is_installed() -> None:
    found = subprocess.run([sys.executable, "-c", BARE_PROCESS], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert int(found.stdout) == len(iceberg.__all__)


def test_type_checkers_see_each_name_where_it_comes_from() -> None:
    typed = {
        f"{node.module}.{alias.name}": alias.asname
        for node in ast.walk(ast.parse(SOURCE.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("committer.")
        for alias in node.names
    }
    assert typed == {
        f"committer.iceberg.{module}.{name}": name
        for module, names in iceberg._NAMES.items()
        for name in names
    }


def test_the_names_that_are_guessed_are_there() -> None:
    assert [name for name in GUESSED if name not in iceberg.__all__] == []
    assert set(iceberg.__all__) <= set(dir(iceberg))


def test_a_name_is_the_very_object_of_its_module() -> None:
    assert iceberg.Schema is Schema


def test_a_name_that_is_not_there_is_an_ordinary_error() -> None:
    with pytest.raises(AttributeError, match=r"'committer\.iceberg' has no attribute 'Snapshots'"):
        iceberg.Snapshots  # type: ignore[attr-defined]  # noqa: B018
