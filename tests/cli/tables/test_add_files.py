"""`frazil table add-files`: what does not fit is named, and nothing is published then."""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from committer.iceberg.schema.name_mapping import NAME_MAPPING_PROPERTY
from committer.plan.batch.adopted_paths import ADOPT_LOCATIONS_PROPERTY
from committer.request.commit_request import CommitRequest
from committer.request.request_format import read_request
from committer.service.process.composition import Parts
from committer.storage.inbox.inbox import skips_of
from tests.support.cli.commands import Frazil
from tests.support.workers.footer_bytes import BINARY, Struct, statistics_of, with_footer
from tests.support.workers.parquet_files import parquet_bytes, with_ids, write_encrypted

ROWS = pa.table({"id": [1, 2], "day": pa.array([20513, 20513], pa.date32())})


@pytest.fixture
def folder(frazil: Frazil) -> Path:
    """Return a folder below the location of a new table `db.flights`."""
    made = frazil(
        *("table", "create", "db.flights", "--partition", "month(day)"),
        *("--schema", "id long not null, day date"),
    )
    assert made.code == 0, made.err
    place = Path(frazil.load().metadata.location.removeprefix("file://")) / "old"
    place.mkdir()
    return place


def published(frazil: Frazil) -> list[CommitRequest]:
    async def work(parts: Parts) -> list[CommitRequest]:
        keys = [one.key async for one in parts.inbox.list(skips=skips_of())]
        return [read_request(await parts.inbox.get(key), key=key).request for key in keys]

    return frazil.with_parts(work)


def refused(frazil: Frazil, *arguments: str) -> str:
    """Run a command that is refused, and see that nothing has changed."""
    before = frazil.load()
    answer = frazil("table", "add-files", "db.flights", *arguments)
    assert answer.code == 1, answer
    assert published(frazil) == []
    assert frazil.load() == before
    return answer.err


def test_a_dry_run_shows_the_files_and_changes_nothing(frazil: Frazil, folder: Path) -> None:
    pq.write_table(ROWS, folder / "a.parquet")
    pq.write_table(ROWS.slice(0, 0), folder / "none.parquet")
    before = frazil.load()
    shown = frazil("table", "add-files", "db.flights", str(folder), "--dry-run", "--json")
    assert shown.code == 0
    size = (folder / "a.parquet").stat().st_size
    assert shown.lines == [
        {
            "file_path": f"file://{folder}/a.parquet",
            "record_count": 2,
            "file_size_in_bytes": size,
            "partition_path": "day_month=2026-03",
        }
    ]
    said = frazil("table", "add-files", "db.flights", str(folder), "--dry-run")
    assert "day_month=2026-03" in said.out
    assert "none.parquet" in said.err
    assert "nothing was added; 1 file with 2 rows would be" in said.err
    assert NAME_MAPPING_PROPERTY in said.err
    assert (frazil.load(), published(frazil)) == (before, [])


def test_a_request_says_what_it_adopts(frazil: Frazil, folder: Path) -> None:
    pq.write_table(ROWS, folder / "a.parquet")
    answer = frazil("table", "add-files", "db.flights", str(folder), "--timeout", "0s")
    assert answer.code == 1
    assert "is durable" in answer.err and "frazil status" in answer.err
    [request] = published(frazil)
    assert (request.adopt_existing, request.operation) == (True, "append")
    assert (request.producer.one_shot, request.needs.on_conflict) == (True, "fail")
    mapping = orjson.loads(frazil.load().metadata.properties[NAME_MAPPING_PROPERTY])
    assert mapping == [{"field-id": 1, "names": ["id"]}, {"field-id": 2, "names": ["day"]}]


def test_a_branch_that_is_not_there_is_named(frazil: Frazil, folder: Path) -> None:
    pq.write_table(ROWS, folder / "a.parquet")
    assert "has no branch `audit`" in refused(frazil, str(folder), "--branch", "audit")


def test_files_with_ids_need_no_name_mapping(frazil: Frazil, folder: Path) -> None:
    pq.write_table(with_ids(ROWS, 1, 2), folder / "a.parquet")
    said = frazil("table", "add-files", "db.flights", str(folder), "--dry-run")
    assert said.code == 0 and NAME_MAPPING_PROPERTY not in said.err


def test_a_folder_of_files_without_rows_adds_nothing(frazil: Frazil, folder: Path) -> None:
    pq.write_table(ROWS.slice(0, 0), folder / "none.parquet")
    answer = frazil("table", "add-files", "db.flights", str(folder))
    assert answer.code == 0 and published(frazil) == []
    assert "left out, it has no rows" in answer.err


def test_every_file_that_does_not_fit_is_named(frazil: Frazil, folder: Path) -> None:
    pq.write_table(ROWS, folder / "a.parquet")
    pq.write_table(pa.table({"id": ["x"], "day": ROWS["day"][:1]}), folder / "b.parquet")
    days = pa.array([20513, 20700], pa.date32())
    pq.write_table(ROWS.set_column(1, "day", days), folder / "c.parquet")
    (folder / "d.parquet").write_text("no parquet")
    write_encrypted(folder / "e.parquet", ROWS, plaintext_footer=True)
    said = refused(frazil, str(folder))
    assert "4 of 5 files cannot be added" in said and "nothing was added" in said
    for part in (
        "b.parquet\n  column id: found string, expected long",
        "c.parquet\n  partition field day_month (month): the values of column day",
        "d.parquet\n  it is no Parquet file",
        "e.parquet\n  its columns are encrypted",
    ):
        assert part in said
    assert "a.parquet" not in said


def test_what_is_not_there_is_named(frazil: Frazil, folder: Path) -> None:
    assert "found none" in refused(frazil, str(folder / "absent.parquet"))
    assert "found none" in refused(frazil, str(folder))


def test_a_file_that_is_named_twice_is_refused(frazil: Frazil, folder: Path) -> None:
    pq.write_table(ROWS, folder / "a.parquet")
    for again in (folder, folder / "a.parquet"):
        said = refused(frazil, str(folder), str(again))
        assert f"`file://{folder}/a.parquet` is listed twice: name it once. Nothing was" in said
    spelled = refused(frazil, str(folder), f"file:{folder}/a.parquet")
    assert f"`file://{folder}/a.parquet` and `file:{folder}/a.parquet` may be one" in spelled


@pytest.mark.parametrize("names", [("caf\u00e9", "cafe\u0301"), ("a b", "a%20b")], ids=ascii)
def test_two_files_whose_names_some_engine_takes_for_one_are_both_named(
    frazil: Frazil, folder: Path, names: tuple[str, str]
) -> None:
    for name in names:
        pq.write_table(ROWS, folder / f"{name}.parquet")
    said = refused(frazil, str(folder))
    assert all(f"`file://{folder}/{name}.parquet`" in said for name in names)
    assert "may be one file to an engine that decodes percent signs, composes letters" in said
    assert "rename one of two files. Nothing was added" in said


def test_a_place_outside_the_table_needs_its_property(
    frazil: Frazil, folder: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    pq.write_table(ROWS, outside / "a.parquet")
    said = refused(frazil, str(outside))
    assert ADOPT_LOCATIONS_PROPERTY in said
    allowed = f"{ADOPT_LOCATIONS_PROPERTY}=file://{outside}"
    assert frazil("table", "set", "db.flights", allowed).code == 0
    assert frazil("table", "add-files", "db.flights", str(outside), "--dry-run").code == 0
    relative = f"{ADOPT_LOCATIONS_PROPERTY}=outside"
    assert "expected folders" in frazil("table", "set", "db.flights", relative).err


def test_extra_columns_are_added_only_if_that_is_asked_for(frazil: Frazil, folder: Path) -> None:
    pq.write_table(ROWS.append_column("rest", ROWS["id"]), folder / "a.parquet")
    assert "column rest: found a column that" in refused(frazil, str(folder))
    asked = frazil(
        *("table", "add-files", "db.flights", str(folder), "--dry-run", "--allow-extra-columns")
    )
    assert asked.code == 0


def test_the_dry_run_says_what_the_committer_would_refuse(frazil: Frazil, folder: Path) -> None:
    """The lowest value, truncated, has a digit more than its column."""
    made = frazil(
        *("table", "create", "db.prices", "--schema", "price decimal(4,2)"),
        *("--partition", "truncate(50, price)"),
        *("--property", f"{ADOPT_LOCATIONS_PROPERTY}=file://{folder}"),
    )
    assert made.code == 0, made.err
    for name, price in (("a", "1.00"), ("b", "-99.99")):
        column = pa.array([Decimal(price)], pa.decimal128(4, 2))
        pq.write_table(pa.table({"price": column}), folder / f"{name}.parquet")
    command = ("table", "add-files", "db.prices")
    for options in (("--dry-run",), ()):
        answer = frazil(*command, str(folder), *options)
        assert answer.code == 1 and "1 of 2 files cannot be added" in answer.err, answer
        assert "b.parquet\n  " in answer.err and "a.parquet" not in answer.err
    assert published(frazil) == []
    assert NAME_MAPPING_PROPERTY not in frazil.load("db.prices").metadata.properties
    assert frazil(*command, str(folder / "a.parquet"), "--dry-run").code == 0


def test_a_rare_footer_is_one_of_the_files_that_do_not_fit(frazil: Frazil, folder: Path) -> None:
    """pyarrow would end the process that looks at these statistics."""

    def change(footer: Struct) -> None:
        statistics_of(footer)[5] = BINARY, b"\1"

    (folder / "a.parquet").write_bytes(with_footer(parquet_bytes(ROWS), change))
    for options in (("--dry-run",), ()):
        said = refused(frazil, str(folder), *options)
        assert "a.parquet\n  row group 0, column id: a minimum or maximum of 1 bytes" in said


def test_folders_of_hive_are_of_the_tables_columns_or_refused(frazil: Frazil, folder: Path) -> None:
    made = frazil(
        *("table", "create", "db.events", "--schema", "id long, eventDate date, country string"),
        *("--partition", "eventDate, country"),
        *("--property", f"{ADOPT_LOCATIONS_PROPERTY}=file://{folder}"),
    )
    assert made.code == 0, made.err
    for path in (
        "eventdate=2026-01-01/Country=IT",
        "year=2020/eventdate=2026-01-01/country=caf%E9",
    ):
        (folder / path).mkdir(parents=True)
        pq.write_table(pa.table({"id": [1]}), folder / path / "a.parquet")
    command = ("table", "add-files", "db.events")
    good = frazil(*command, str(folder / "eventdate=2026-01-01"), "--dry-run", "--json")
    assert [one["partition_path"] for one in good.lines] == ["eventDate=2026-01-01/country=IT"]
    bad = frazil(*command, str(folder), "--dry-run")
    assert bad.code == 1 and "1 of 2 files cannot be added" in bad.err
    assert "folder `country=caf%E9`" in bad.err
    (folder / "year=2020/eventdate=2026-01-01/country=caf%E9").rename(
        folder / "year=2020/eventdate=2026-01-01/country=caf%C3%A9"
    )
    said = frazil(*command, str(folder), "--dry-run").err
    assert "folder `year=2020` of its path: the table has no column `year`" in said
    asked = frazil(*command, str(folder), "--dry-run", "--json", "--allow-extra-columns")
    assert {one["partition_path"] for one in asked.lines} == {
        "eventDate=2026-01-01/country=IT",
        "eventDate=2026-01-01/country=caf%C3%A9",
    }


@pytest.mark.parametrize("name", [b"caf\xe9.parquet", b"country=caf\xe9/a.parquet"], ids=ascii)
def test_a_name_that_no_location_can_hold_is_refused(
    frazil: Frazil, folder: Path, name: bytes
) -> None:
    """The storage does not list it: its rows would be missing without a word."""
    (folder / "a.parquet").write_bytes(parquet_bytes(ROWS))
    path = Path(os.fsdecode(os.fsencode(folder) + b"/" + name))
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(parquet_bytes(ROWS))
    assert "caf\\udce9" in (said := refused(frazil, str(folder))) and "no UTF-8 text" in said
