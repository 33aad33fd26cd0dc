"""`frazil table add-files` beside a committer: other readers read the rows, each once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable

from committer.plan.batch.adopted_paths import ADOPT_LOCATIONS_PROPERTY
from tests.support.cli.commands import Frazil
from tests.support.cli.serving import serving
from tests.support.integration.duckdb_iceberg import duckdb_with_iceberg
from tests.support.integration.readers import local
from tests.support.workers.footer_bytes import with_footer
from tests.support.workers.parquet_files import parquet_bytes, with_ids

pytestmark = [pytest.mark.server, pytest.mark.timeout(120)]

AT = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("home")
    with serving(folder) as process:
        process.wait_until_ready()
        yield folder


@pytest.fixture
def frazil(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Frazil:
    return Frazil(home, monkeypatch, capsys, {"FRAZIL_QUEUE__URL": "private"})


def create(frazil: Frazil, name: str, old: Path, columns: str, *partition: str) -> None:
    allowed = f"{ADOPT_LOCATIONS_PROPERTY}=file://{old}"
    made = frazil("table", "create", name, "--schema", columns, "--property", allowed, *partition)
    assert made.code == 0, made.err


def by_pyiceberg(frazil: Frazil, name: str) -> list[tuple[object, ...]]:
    read = StaticTable.from_metadata(frazil.load(name).metadata_location).scan().to_arrow()
    return sorted(zip(*(column.to_pylist() for column in read.columns), strict=True), key=str)


def by_duckdb(frazil: Frazil, name: str) -> list[tuple[object, ...]]:
    with duckdb_with_iceberg() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        location = local(frazil.load(name).metadata_location)
        found = connection.execute("SELECT * FROM iceberg_scan(?)", [location]).fetchall()
        return sorted(found, key=str)


def add(frazil: Frazil, name: str, *paths: Path) -> str:
    answer = frazil("table", "add-files", name, *map(str, paths))
    assert answer.code == 0, answer.err
    return answer.err


def test_files_in_hives_layout_are_read_by_name_and_by_path(frazil: Frazil, tmp_path: Path) -> None:
    create(frazil, "db.hive", tmp_path, "id long, country string", "--partition", "country")
    for country in ("DE", "__HIVE_DEFAULT_PARTITION__"):
        (tmp_path / f"country={country}").mkdir()
        pq.write_table(pa.table({"id": [1, 2]}), tmp_path / f"country={country}" / "part-0.parquet")
    assert "added 2 files with 4 rows to db.hive, snapshot " in add(frazil, "db.hive", tmp_path)
    rows = sorted([(1, "DE"), (2, "DE"), (1, None), (2, None)], key=str)
    assert by_pyiceberg(frazil, "db.hive") == rows
    assert by_duckdb(frazil, "db.hive") == rows
    again = frazil("table", "add-files", "db.hive", str(tmp_path))
    assert again.code == 1 and "2 of its files are live already" in again.err
    assert by_pyiceberg(frazil, "db.hive") == rows
    # The mistake left nothing to clean up.
    assert frazil("quarantine", "list", "--json").lines == []


def test_files_of_a_branch_are_on_that_branch_alone_until_it_is_published(
    frazil: Frazil, tmp_path: Path
) -> None:
    create(frazil, "db.audited", tmp_path, "id long")
    for number in (1, 2):
        pq.write_table(pa.table({"id": [number]}), tmp_path / f"{number}.parquet")
    add(frazil, "db.audited", tmp_path / "1.parquet")
    made = frazil("table", "branch", "create", "db.audited", "audit")
    assert made.code == 0, made.err

    on_branch = frazil(
        *("table", "add-files", "db.audited", str(tmp_path / "2.parquet"), "--branch", "audit")
    )

    assert on_branch.code == 0, on_branch.err
    assert "added 1 file with 1 rows to branch `audit` of db.audited, snapshot " in on_branch.err
    assert by_pyiceberg(frazil, "db.audited") == [(1,)]
    # What is live is looked up on the branch.
    for path, branch, code in (("2.parquet", "audit", 1), ("2.parquet", "main", 0)):
        again = frazil(
            *("table", "add-files", "db.audited", str(tmp_path / path)),
            *("--branch", branch, "--dry-run"),
        )
        assert again.code == code, again.err
    published = frazil("table", "fast-forward", "db.audited", "main", "audit")
    assert published.code == 0, published.err
    assert by_pyiceberg(frazil, "db.audited") == [(1,), (2,)]


def test_types_of_old_writers_are_read_as_the_tables(frazil: Frazil, tmp_path: Path) -> None:
    create(
        frazil,
        "db.types",
        tmp_path,
        "id long, at timestamptz, local timestamp, amount decimal(12,2)",
    )
    columns = {
        "amount": pa.array([None, 5], pa.decimal128(9, 2)),
        "id": pa.array([1, 2], pa.int32()),
        "at": pa.array([AT, None], pa.timestamp("us")),
        "local": pa.array([AT, AT], pa.timestamp("us")),
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    millis = {"id": [3], "at": pa.array([AT], pa.timestamp("ms", "UTC"))}
    pq.write_table(pa.table(millis), tmp_path / "b.parquet")
    add(frazil, "db.types", tmp_path)
    bare = AT.replace(tzinfo=None)
    rows = [(1, AT, bare, None), (2, None, bare, Decimal(5)), (3, AT, None, None)]
    assert by_pyiceberg(frazil, "db.types") == rows
    with duckdb_with_iceberg() as connection:
        # Its times with a zone need a package that is not here.
        found = connection.execute(
            'SELECT id, epoch_us("at"), "local", amount FROM iceberg_scan(?) ORDER BY id',
            [local(frazil.load("db.types").metadata_location)],
        ).fetchall()
    micros = int(AT.timestamp() * 1_000_000)
    assert found == [(1, micros, bare, None), (2, None, bare, Decimal(5)), (3, micros, None, None)]


def test_a_file_that_pyiceberg_has_added_is_refused_and_so_the_other_way(
    frazil: Frazil, home: Path, tmp_path: Path
) -> None:
    create(frazil, "db.beside", tmp_path, "id long, name string")
    for name in ("a", "b"):
        table = pa.table({"id": [1], "name": [name]})
        pq.write_table(with_ids(table, 1, 2), tmp_path / f"{name}.parquet")
    add(frazil, "db.beside", tmp_path / "a.parquet")
    theirs = SqlCatalog("frazil", uri=f"sqlite:///{home}/catalog.db").load_table("db.beside")
    with pytest.raises(ValueError, match="already referenced by table"):
        theirs.add_files([f"file://{tmp_path}/a.parquet"])
    theirs.add_files([f"file://{tmp_path}/b.parquet"])
    refused = frazil("table", "add-files", "db.beside", str(tmp_path / "b.parquet"))
    assert refused.code == 1 and "1 of its files is live already" in refused.err
    rows = [(1, "a"), (1, "b")]
    assert by_pyiceberg(frazil, "db.beside") == rows
    assert by_duckdb(frazil, "db.beside") == rows


def test_files_with_rare_footers_land_as_the_dry_run_says(frazil: Frazil, tmp_path: Path) -> None:
    create(frazil, "db.rare", tmp_path, "id long")
    rows = pa.table({"id": [1, 2]})
    with pq.ParquetWriter(tmp_path / "without-rows.parquet", rows.schema) as writer:
        for group in (rows, rows.slice(0, 0), rows):
            writer.write_table(group)
    ordered = parquet_bytes(pa.table({"id": [3, 4, 5]}), row_group_size=1)
    turned = with_footer(ordered, lambda footer: footer[4][1][1].reverse())
    (tmp_path / "turned.parquet").write_bytes(turned)
    pq.write_table(pa.table({"id": [6]}), tmp_path / "bare.parquet", write_statistics=False)
    dry = frazil("table", "add-files", "db.rare", str(tmp_path), "--dry-run")
    assert dry.code == 0 and "3 files with 8 rows would be" in dry.err
    assert "added 3 files with 8 rows" in add(frazil, "db.rare", tmp_path)
    numbers = [(number,) for number in (1, 1, 2, 2, 3, 4, 5, 6)]
    assert by_pyiceberg(frazil, "db.rare") == numbers
    assert by_duckdb(frazil, "db.rare") == numbers
