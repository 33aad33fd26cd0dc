"""`frazil.spark.create_table` on a SQLite catalog. A schema is enough: no Spark runs."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql.types import (
    ArrayType,
    CharType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
    VarcharType,
)

import frazil
from committer.catalog.sql.sql_catalog import SqlCatalog
from committer.creation.create_table import NewTable
from committer.ports.pointer_swap import LoadedTable
from committer.storage.disk.local import LocalStorage
from frazil.spark import create_table
from workers.requests.blocking_publisher import BlockingPublisher
from workers.settings.session_settings import remember_settings, with_session_settings

ROWS = StructType(
    [
        StructField("id", LongType(), False, {"comment": "of the flight"}),
        StructField("name", StringType()),
        StructField("ts", TimestampType()),
    ]
)


@dataclass
class Frame:
    """What `create_table` asks a DataFrame for."""

    schema: StructType


@pytest.fixture
def settings(tmp_path: Path) -> Mapping[str, str]:
    async def make() -> None:
        catalog = await SqlCatalog.open(uri=uri, name="frazil", storage=LocalStorage(), create=True)
        await catalog.close()

    uri = f"sqlite:///{tmp_path}/catalog.db"
    asyncio.run(make())
    return {"home": str(tmp_path), "catalog.uri": uri, "queue.url": "none"}


def load(table: str, settings: Mapping[str, str]) -> frazil.Table:
    return frazil.load_table(table, catalog_uri=settings["catalog.uri"])


def test_a_schema_becomes_a_table_with_its_layout(settings: Mapping[str, str]) -> None:
    is_new = create_table(
        ROWS,
        "db.flights",
        partition_by=["days(ts)", "bucket(16, id)", "truncate(4, name)", "name"],
        sort_by="ts desc",
        properties={"write.format.default": "orc", "format-version": "3"},
        settings=settings,
    )
    table = load("db.flights", settings)
    assert is_new
    assert [str(field.transform) for field in table.spec().fields] == [
        "day",
        "bucket[16]",
        "truncate[4]",
        "identity",
    ]
    assert [(one.direction, one.null_order) for one in table.sort_order().fields] == [
        ("desc", "nulls-last")
    ]
    assert [(one.required, one.doc) for one in table.schema().fields] == [
        (True, "of the flight"),
        (False, None),
        (False, None),
    ]
    assert table.format_version == 3
    assert table.properties["write.format.default"] == "orc"
    assert table.properties["frazil.expire.enabled"] == "true"
    assert table.location() == f"file://{settings['home']}/warehouse/db/flights"


def test_columns_of_a_dataframe_are_optional_and_keep_their_comments(
    settings: Mapping[str, str],
) -> None:
    create_table(Frame(ROWS), "db.flights", settings=settings)
    table = load("db.flights", settings)
    assert {one.required for one in table.schema().fields} == {False}
    assert table.schema().fields[0].doc == "of the flight"
    assert table.format_version == 2


def test_a_table_that_exists_is_taken_if_the_columns_fit(settings: Mapping[str, str]) -> None:
    assert create_table(ROWS, "db.flights", settings=settings)
    with pytest.raises(frazil.TableAlreadyExistsError, match="exists already in catalog `frazil`"):
        create_table(ROWS, "db.flights", settings=settings)
    assert not create_table(ROWS, "db.flights", exists_ok=True, settings=settings)
    more = StructType([*ROWS.fields, StructField("more", LongType())])
    with pytest.raises(frazil.PublishError, match=r"exists already: 1 column does not fit"):
        create_table(more, "db.flights", exists_ok=True, settings=settings)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"partition_by": "day(name)"}, "day does not take a column of type string"),
        ({"partition_by": "days(when)"}, "no column `when`"),
        ({"sort_by": "other desc"}, "no column `other`"),
        ({"format_version": 4}, "format version 4: expected one of 1, 2, 3"),
        ({"format_version": 2, "properties": {"format-version": "3"}}, "format version 2 and 3"),
        ({"properties": {"frazil.producer.x": "1"}}, "belongs to the ledger"),
        ({"properties": {"uuid": "1"}}, "is reserved"),
        ({"location": "file:///"}, "inbox"),
    ],
)
def test_what_cannot_be_is_said_in_one_line_and_nothing_is_made(
    settings: Mapping[str, str], arguments: dict[str, object], said: str
) -> None:
    with pytest.raises(frazil.SettingsError, match=said) as refused:
        create_table(ROWS, "db.flights", settings=settings, **arguments)  # type: ignore[arg-type]
    assert "\n" not in str(refused.value)
    with pytest.raises(frazil.NoSuchTableError):
        load("db.flights", settings)


@pytest.mark.parametrize("name", ["flights", "db/flights", "db.fl\nights"])
def test_a_name_that_no_catalog_has_is_refused(settings: Mapping[str, str], name: str) -> None:
    with pytest.raises(frazil.SettingsError, match="create_table"):
        create_table(ROWS, name, settings=settings)


def test_settings_of_a_session_are_known_to_calls_of_its_process() -> None:
    try:
        remember_settings({"catalog.uri": "sqlite:///a", "queue.url": "none"})
        assert with_session_settings({"Catalog.URI": "sqlite:///b"}) == {
            "catalog.uri": "sqlite:///b",
            "queue.url": "none",
        }
    finally:
        remember_settings({})


_CREATOR = """
import sys
from pyspark.sql.types import LongType, StructType
from frazil.spark import create_table
home, uri = sys.argv[1:]
settings = {"home": home, "catalog.uri": uri, "queue.url": "none"}
schema = StructType().add("id", LongType())
sys.stdin.readline()
print([create_table(schema, f"new{n}.t", exists_ok=True, settings=settings) for n in range(8)])
"""


def test_a_creator_that_is_outrun_has_the_table_of_the_other(
    settings: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    create = BlockingPublisher.create_table

    def outrun(publisher: BlockingPublisher, new: NewTable) -> LoadedTable:
        create(publisher, new)
        return create(publisher, new)

    monkeypatch.setattr(BlockingPublisher, "create_table", outrun)
    assert create_table(ROWS, "db.flights", exists_ok=True, settings=settings) is False
    assert [one.name for one in load("db.flights", settings).schema().fields] == [
        "id",
        "name",
        "ts",
    ]


def test_of_several_creators_of_a_name_one_creates_it_and_all_have_it(
    settings: Mapping[str, str],
) -> None:
    command = [sys.executable, "-c", _CREATOR, settings["home"], settings["catalog.uri"]]
    creators = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    for creator in creators:
        assert creator.stdin
        creator.stdin.write("\n")
        creator.stdin.flush()
    answers = [creator.communicate()[0] for creator in creators]
    assert {creator.returncode for creator in creators} == {0}
    created = [[word == "True" for word in text.strip()[1:-1].split(", ")] for text in answers]
    assert [sum(column) for column in zip(*created, strict=True)] == [1] * 8


def test_the_log_says_how_much_history_a_new_table_keeps(
    settings: Mapping[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    create_table(ROWS, "db.flights", settings=settings)
    [notice] = caplog.messages
    assert "db.flights keeps the newest 5,000 snapshots of each branch and those of the" in notice
    assert "frazil table set db.flights history.expire.max-snapshot-age-ms=432000000" in notice
    caplog.clear()
    create_table(ROWS, "db.flights", exists_ok=True, settings=settings)
    days = {"history.expire.max-snapshot-age-ms": "432000000"}
    create_table(ROWS, "db.kept", properties=days, settings=settings)
    assert caplog.messages == []


@pytest.mark.parametrize("name", ["_file", "_Row_ID", "_partition"])
def test_a_column_that_iceberg_reserves_is_refused(settings: Mapping[str, str], name: str) -> None:
    rows = StructType([*ROWS.fields, StructField(name, LongType())])
    with pytest.raises(frazil.SettingsError, match=f"column `{name}`: Iceberg reserves this name"):
        create_table(rows, "db.flights", settings=settings)
    with pytest.raises(frazil.NoSuchTableError):
        load("db.flights", settings)


def test_a_schema_may_have_texts_of_a_length_and_names_of_any_characters(
    settings: Mapping[str, str],
) -> None:
    inner = StructType([StructField("code", CharType(3))])
    rows = StructType(
        [
            StructField("order id", VarcharType(7)),
            StructField("places", ArrayType(inner)),
            StructField("by name", MapType(VarcharType(2), CharType(1))),
        ]
    )
    layout = ["bucket(16, `order id`)", "truncate(2, `order id`)"]
    assert create_table(rows, "db.texts", partition_by=layout, settings=settings)
    table = load("db.texts", settings)
    assert [field.name for field in table.spec().fields] == ["order id_bucket", "order id_trunc"]
    kinds = [field.field_type for _, field in table.schema().walk()]
    assert {str(kind) for kind in kinds if kind.is_primitive} == {"string"}
    assert not create_table(rows, "db.texts", exists_ok=True, settings=settings)


def test_partitions_are_texts(settings: Mapping[str, str]) -> None:
    with pytest.raises(frazil.SettingsError, match=r"partition_by: expected .* found a int"):
        partitions: list[str] = [7]  # type: ignore[list-item]
        create_table(ROWS, "db.flights", partition_by=partitions, settings=settings)
