"""Tables that Frazil alone has written, one for each feature, opened by Java, PyIceberg and DuckDB.

Rows, files, snapshots and partition values agree. Then Iceberg Java rewrites what we have written,
we read what it made, write on, and all read that.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import StaticTable

from committer.iceberg.entry.data_file import DataFile, ManifestContent, ManifestEntry
from committer.iceberg.metadata.table_metadata import parse_table_metadata, print_table_metadata
from committer.iceberg.schema.partition_spec import partition_type
from committer.iceberg.values.single_value import print_json_value
from committer.iceberg.values.types import BinaryType
from tests.support.integration.duckdb_iceberg import duckdb_rows, duckdb_with_iceberg
from tests.support.integration.java_engine import JavaEngine, java_engine
from tests.support.integration.readers import local
from tests.support.integration.real_harness import ROOT, RealHarness
from tests.support.integration.written_features import (
    DUCKDB,
    FEATURES,
    JAVA,
    PYICEBERG,
    Feature,
    rows,
)
from tests.support.integration.written_table import Row, WrittenTable

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(180)]

Texts = list[str]


@dataclass(slots=True)
class Written:
    """A table with its rows, known to the Java catalog by the name of its feature."""

    feature: Feature
    table: WrittenTable
    rows: list[Row]
    java: JavaEngine

    @property
    def name(self) -> str:
        return f"frazil.db.{self.feature.name}"

    def skip_without(self, reader: str) -> None:
        """Skip what a reader cannot do; that it refuses is held where rows are read."""
        if reader in self.feature.without:
            pytest.skip(f"{reader}: {self.feature.without[reader]}")

    @property
    def wanted(self) -> Texts:
        return sorted(text([row[name] for name in self.feature.columns]) for row in self.rows)


@pytest.fixture(scope="module")
def all_written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Written]]:
    folder = tmp_path_factory.mktemp("written")
    made = {each.name: each.build(folder / "tables" / each.name) for each in FEATURES}
    harness = RealHarness(folder)
    harness.warehouse.mkdir()
    with java_engine(harness) as java:
        java.sql("CREATE NAMESPACE frazil.db")
        for feature in FEATURES:
            location = made[feature.name][0].metadata_location
            java.sql(
                f"CALL frazil.system.register_table(table => 'db.{feature.name}',"
                f" metadata_file => '{location}')"
            )
        yield {each.name: Written(each, *made[each.name], java) for each in FEATURES}


@pytest.fixture(params=[feature.name for feature in FEATURES])
def written(request: pytest.FixtureRequest, all_written: dict[str, Written]) -> Written:
    return all_written[request.param]


# The features in which a rewrite of Java shows more than in the others.
REWRITTEN = frozenset(
    {
        "deletion_vectors",
        "equality_deletes",
        "partition_evolution_v2",
        "types",
    }
)
AS_REWRITTEN = [
    pytest.param(each.name, marks=() if each.name in REWRITTEN else pytest.mark.heavy)
    for each in FEATURES
]


def text(value: object) -> str:
    """Format a value as all readers do: structs without names, and no JSON limits."""
    return repr(_plain(value))


def _plain(value: object) -> object:
    match value:
        case dict():
            return [_plain(part) for part in value.values()]
        case list() | tuple():
            return [_plain(part) for part in value]
        case bytes() | bytearray():
            return value.hex()
        case Decimal() | date() | datetime():
            return str(value)
        case _:
            return value


# --- The rows of each reader ---------------------------------------------------------------------


def rows_by_java(written: Written) -> Texts:
    kinds = {
        column.name: column.field_type for column in written.table.metadata.current_schema.fields
    }
    columns = (
        f"lower(hex(`{name}`))" if kinds[name] == BinaryType() else f"`{name}`"
        for name in written.feature.columns
    )
    found = written.java.sql(f"SELECT {', '.join(columns)} FROM {written.name}")
    return sorted(map(text, found))


def rows_by_pyiceberg(written: Written) -> Texts:
    found = StaticTable.from_metadata(written.table.metadata_location).scan().to_arrow()
    return sorted(
        text([row[name] for name in written.feature.columns]) for row in found.to_pylist()
    )


def rows_by_duckdb(written: Written) -> Texts:
    return sorted(
        map(text, duckdb_rows(local(written.table.metadata_location), written.feature.columns))
    )


ROWS: dict[str, Callable[[Written], Texts]] = {
    JAVA: rows_by_java,
    PYICEBERG: rows_by_pyiceberg,
    DUCKDB: rows_by_duckdb,
}


@pytest.mark.parametrize("reader", ROWS)
def test_all_readers_see_our_rows(written: Written, reader: str) -> None:
    why = written.feature.without.get(reader)
    if why is None:
        assert ROWS[reader](written) == written.wanted
    elif reader == DUCKDB:
        assert why in _duckdb_apart(written)
    else:
        with pytest.raises(Exception, match=why):
            ROWS[reader](written)


def _duckdb_apart(written: Written) -> str:
    """Return DuckDB's output in a process of its own, which DuckDB may crash."""
    program = (
        "import sys; from tests.support.integration.duckdb_iceberg import duckdb_rows;"
        "duckdb_rows(sys.argv[1], sys.argv[2:])"
    )
    command = [sys.executable, "-c", program, local(written.table.metadata_location)]
    done = subprocess.run(
        [*command, *written.feature.columns], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 0
    return done.stderr


# --- Files, partitions, snapshots ----------------------------------------------------------------


def our_files(table: WrittenTable) -> Texts:
    return sorted(_file_text(table, entry) for entry in table.live())


def _file_text(table: WrittenTable, entry: ManifestEntry) -> str:
    file = entry.data_file
    return json.dumps(
        [
            *(int(file.content), file.file_path, file.record_count, file.file_size_in_bytes),
            *(file.spec_id, file.content_offset, _partition(table, file)),
        ],
        sort_keys=True,
    )


def _partition(table: WrittenTable, file: DataFile) -> dict[str, object]:
    """Return the values that are not null by the names of their fields."""
    metadata = table.metadata
    kind = partition_type(metadata.spec_by_id(file.spec_id), metadata.current_schema)
    pairs = zip(kind.fields, file.partition, strict=True)
    return {
        field.name: print_json_value(field.field_type, value)
        for field, value in pairs
        if value is not None
    }


def java_files(written: Written) -> Texts:
    is_partitioned = any(spec.fields for spec in written.table.metadata.partition_specs)
    partition = "to_json(partition)" if is_partitioned else "'{}'"
    offset = "content_offset" if written.table.metadata.format_version > 2 else "null"
    found = written.java.sql(
        "SELECT content, file_path, record_count, file_size_in_bytes, spec_id,"
        f" {offset}, {partition} FROM {written.name}.files"
    )
    return sorted(json.dumps([*file, json.loads(part)], sort_keys=True) for *file, part in found)


def test_java_sees_our_files_and_partition_values(written: Written) -> None:
    written.skip_without(JAVA)
    assert java_files(written) == our_files(written.table)


def test_java_sees_our_snapshots(written: Written) -> None:
    found = written.java.sql(
        "SELECT snapshot_id, parent_id, operation, manifest_list, to_json(summary)"
        f" FROM {written.name}.snapshots"
    )
    seen = [(*rest, json.loads(summary)) for *rest, summary in found]
    ours = []
    for one in written.table.metadata.snapshots:
        summary = {key: value for key, value in (one.summary or {}).items() if key != "operation"}
        names = (one.snapshot_id, one.parent_snapshot_id, one.operation, one.manifest_list)
        ours.append((*names, summary))
    assert sorted(seen, key=repr) == sorted(ours, key=repr)


def test_pyiceberg_sees_our_files_partition_values_and_snapshots(written: Written) -> None:
    written.skip_without(PYICEBERG)
    table = StaticTable.from_metadata(written.table.metadata_location)
    tasks = list(table.scan().plan_files())
    data = [entry.data_file for entry in written.table.live(ManifestContent.DATA)]
    found = [(task.file.file_path, task.file.record_count, _values(task.file)) for task in tasks]
    ours = [(file.file_path, file.record_count, list(file.partition)) for file in data]
    assert sorted(found, key=repr) == sorted(ours, key=repr)
    deletes = {each.file_path for task in tasks for each in task.delete_files}
    applied = written.table.live(ManifestContent.DELETES)
    assert deletes == {entry.data_file.file_path for entry in applied}
    assert [each.snapshot_id for each in table.metadata.snapshots] == [
        each.snapshot_id for each in written.table.metadata.snapshots
    ]


def _values(file: Any) -> list[object]:
    return [file.partition[at] for at in range(len(file.partition))]


def test_duckdb_sees_our_files_and_snapshots(written: Written) -> None:
    written.skip_without(DUCKDB)
    metadata = [local(written.table.metadata_location)]
    with duckdb_with_iceberg() as connection:
        files = connection.execute(
            "SELECT file_path, record_count FROM iceberg_metadata(?) WHERE status <> 'DELETED'",
            metadata,
        ).fetchall()
        snapshots = connection.execute(
            "SELECT snapshot_id, manifest_list FROM iceberg_snapshots(?)", metadata
        ).fetchall()
    live = [entry.data_file for entry in written.table.live()]
    assert sorted(files) == sorted((file.file_path, file.record_count) for file in live)
    ours = [(one.snapshot_id, one.manifest_list) for one in written.table.metadata.snapshots]
    assert sorted(snapshots) == sorted(ours)


# --- Details that only one feature has -----------------------------------------------------------


def test_java_travels_to_our_tags_branches_and_snapshots(all_written: dict[str, Written]) -> None:
    written = all_written["branches"]
    for version, ids in (("first", [1]), ("side", [1, 3]), (4000, [1]), (4001, [1, 2])):
        found = written.java.sql(f"SELECT id FROM {written.name} VERSION AS OF {version!r}")
        assert sorted(each for [each] in found) == ids
    refs = written.java.sql(f"SELECT name, type, snapshot_id FROM {written.name}.refs")
    ours = written.table.metadata.refs.items()
    assert sorted(refs) == sorted([name, ref.type.upper(), ref.snapshot_id] for name, ref in ours)


def test_java_gives_rows_the_ids_that_our_manifests_say(all_written: dict[str, Written]) -> None:
    written = all_written["appends_v3"]
    found = written.java.sql(
        f"SELECT _row_id, _last_updated_sequence_number, id FROM {written.name} ORDER BY _row_id"
    )
    ids = [row["id"] for row in rows(*range(7), *range(10, 17), *range(20, 27))]
    assert found == [[at, 1 + at // 7, each] for at, each in enumerate(ids)]
    assert written.table.metadata.next_row_id == len(ids)


def test_java_prunes_by_our_bounds_and_summaries(all_written: dict[str, Written]) -> None:
    written = all_written["partitions_by_value"]
    query = f"SELECT count(*) FROM {written.name} WHERE name = 'plain' AND id > 100"
    assert written.java.value(query) == sum(
        row["name"] == "plain" and row["id"] > 100 for row in written.rows
    )
    bounds = written.java.sql(
        f"SELECT min(readable_metrics.id.lower_bound), max(readable_metrics.id.upper_bound)"
        f" FROM {written.name}.files"
    )
    ids = [row["id"] for row in written.rows]
    assert bounds == [[min(ids), max(ids)]]


# --- Tables written by Frazil and Java in turn ---------------------------------------------------


@pytest.mark.parametrize("written", AS_REWRITTEN, indirect=True)
def test_we_read_what_java_rewrites_and_all_read_what_we_append_then(written: Written) -> None:
    """Runs last in this file: the tables are Java's afterwards."""
    written.skip_without(JAVA)
    java, name = written.java, f"db.{written.feature.name}"
    before = len(written.table.manifests(written.table.metadata.current_snapshot))
    [manifests] = java.sql(f"CALL frazil.system.rewrite_manifests(table => '{name}')")
    _check_ours_is_javas(written)
    [files] = java.sql(
        f"CALL frazil.system.rewrite_data_files(table => '{name}',"
        " options => map('rewrite-all', 'true'))"
    )
    _check_ours_is_javas(written)
    java.sql(
        f"CALL frazil.system.expire_snapshots(table => '{name}', retain_last => 1,"
        " older_than => TIMESTAMP '2100-01-01 00:00:00')"
    )
    _check_ours_is_javas(written)
    assert rows_by_java(written) == written.wanted
    _check_append_on_it(written)
    print(
        f"{name}: {before} manifests; Java rewrote {manifests[0]} into {manifests[1]}, and"
        f" {files[0]} data files into {files[1]}; {len(written.rows) - 1} rows as before"
    )


def _check_append_on_it(written: Written) -> None:
    written.table.append([written.rows[0]])
    written.rows.append(written.rows[0])
    again, location = f"db.{written.feature.name}_again", written.table.metadata_location
    written.java.sql(
        f"CALL frazil.system.register_table(table => '{again}', metadata_file => '{location}')"
    )
    found = written.java.value(f"SELECT count(*) FROM frazil.{again}")
    assert found == len(written.rows)
    for reader in (PYICEBERG, DUCKDB):
        # Java has applied the deletes that PyIceberg cannot read, in the codec of the table.
        if reader not in written.feature.without:
            assert ROWS[reader](written) == written.wanted


def _check_ours_is_javas(written: Written) -> None:
    [[location]] = written.java.sql(
        f"SELECT file FROM {written.name}.metadata_log_entries ORDER BY timestamp DESC LIMIT 1"
    )
    content = Path(local(location)).read_bytes()
    if not location.endswith(".gz.metadata.json"):
        assert print_table_metadata(parse_table_metadata(content)) == content
    written.table.reload(location)
    assert java_files(written) == our_files(written.table)
