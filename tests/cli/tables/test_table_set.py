"""`frazil table set`, and what properties `frazil table create` takes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from committer.catalog.sql.sql_catalog import SqlCatalog
from committer.cli.tables.table_properties import _KNOWN
from committer.iceberg.updates.metadata_update import SetProperties
from committer.ledger_entry import property_key
from committer.ports.pointer_swap import Conflict, Swap, SwapAnswer
from committer.service.admin.table_change import change_table
from committer.service.process.composition import Parts, open_parts
from committer.settings.service_settings import load_settings
from committer.table_defaults import NEW_TABLE_PROPERTIES
from tests.support.cli.commands import Frazil

_OURS = re.compile(r"`(frazil\.[a-z.-]+)`")

WRONG = [
    ("frazil.expire.enabled=maybe", "expected `true` or `false`, found `maybe`"),
    ("frazil.commit.min-interval-ms=1s", "expected 0 to 3600000, found `1s`"),
    ("frazil.commit.min-interval-ms=3600001", "expected 0 to 3600000"),
    ("frazil.commit.min-interval-ms=٣", "expected 0 to 3600000"),
    ("frazil.commit.min-interval=5", "did you mean `frazil.commit.min-interval-ms`?"),
    ("frazil.deletes.convert-positions=yes", "expected `true` or `false`, found `yes`"),
    ("frazil.upsert.deletes=vectors", "expected `equality` or `positions`, found `vectors`"),
    ("frazil.tags.every=hourly", "expected minutes, hours or days, as 15m, 1h or 7d"),
    ("frazil.tags.every=1m", "`frazil.tags.keep=7d`: expected tags to stay for 1 to 1000"),
    ("frazil.tags.every=8d", "`frazil.tags.keep=7d`: expected tags to stay for 1 to 1000"),
    ("frazil.xyzzy=5", "there are frazil.expire.enabled"),
    ("frazil.producer.query-1=5", "belongs to the ledger"),
    ("frazil.producer@b.query-1=5", "belongs to the ledger"),
    ("history.expire.min-snapshots-to-keep=0", "expected a whole number from 1 on"),
    ("write.metadata.compression-codec=zstd", "expected `none` or `gzip`"),
    ("write.format.default=foo", "expected `parquet` or `orc` or `avro`, found `foo`"),
    ("write.delete.format.default=csv", "expected `parquet` or `orc` or `avro`, found `csv`"),
    ("current-schema=1", "is reserved"),
    ("a", "expected KEY=VALUE, found `a`"),
    ("=a", "expected KEY=VALUE"),
]


@pytest.fixture
def table(frazil: Frazil) -> Frazil:
    assert frazil("table", "create", "db.flights", "--schema", "id long").code == 0
    return frazil


def properties(frazil: Frazil) -> dict[str, str]:
    found: dict[str, str] = frazil("table", "show", "db.flights", "--json").object["properties"]
    return found


def test_properties_are_set_and_removed_in_one_change(table: Frazil) -> None:
    before = table.load()
    answer = table(
        *("table", "set", "db.flights", "a=b=c", "frazil.commit.min-interval-ms=50"),
        *("--unset", "frazil.expire.enabled", "--unset", "not.there"),
    )
    assert (answer.code, answer.out) == (0, ""), answer
    after = table.load()
    assert after.metadata.properties == {
        **{k: v for k, v in before.metadata.properties.items() if k != "frazil.expire.enabled"},
        "a": "b=c",
        "frazil.commit.min-interval-ms": "50",
    }
    assert len(after.metadata.metadata_log) == len(before.metadata.metadata_log) + 1
    assert after.metadata.table_uuid == before.metadata.table_uuid


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (("frazil.tags.every=1m", "frazil.tags.keep=12h"), ("frazil.tags.keep=7d",)),
        (("frazil.tags.every=1m", "frazil.tags.keep=12h"), ("--unset", "frazil.tags.keep")),
        (("frazil.tags.every=1h", "frazil.tags.keep=2h"), ("frazil.tags.every=3h",)),
        (("frazil.tags.every=1h", "frazil.tags.keep=2h"), ("frazil.tags.keep=59m",)),
    ],
)
def test_periods_of_tags_are_checked_against_those_that_the_table_has(
    table: Frazil, first: tuple[str, ...], then: tuple[str, ...]
) -> None:
    assert table("table", "set", "db.flights", *first).code == 0
    before = table.load().metadata_location
    answer = table("table", "set", "db.flights", *then)
    assert (answer.code, answer.out) == (2, "")
    assert "expected tags to stay for 1 to 1000 intervals" in answer.err
    assert table.load().metadata_location == before
    # Another property is none of its business.
    assert table("table", "set", "db.flights", "a=b").code == 0


def test_one_period_of_tags_fits_the_other_that_the_table_has(table: Frazil) -> None:
    for change in (
        ("frazil.tags.keep=12h",),
        ("frazil.tags.every=1m",),
        ("--unset", "frazil.tags.every"),
        ("frazil.tags.keep=30d",),
    ):
        assert table("table", "set", "db.flights", *change).code == 0


def test_what_is_so_already_is_not_changed(table: Frazil) -> None:
    before = table.load().metadata_location
    answer = table("table", "set", "db.flights", "frazil.expire.enabled=true", "--unset", "a")
    assert (answer.code, answer.err) == (
        0,
        "db.flights: no change, the properties are set already\n",
    )
    assert table.load().metadata_location == before


@pytest.mark.parametrize(("pair", "said"), WRONG)
def test_a_malformed_property_is_refused_and_nothing_is_changed(
    table: Frazil, pair: str, said: str
) -> None:
    before = table.load().metadata_location
    for command in (
        ("table", "set", "db.flights", "good=1", pair),
        ("table", "create", "db.other", "--schema", "id long", "--property", pair),
    ):
        answer = table(*command)
        assert (answer.code, answer.out) == (2, "")
        assert said in answer.err
    assert table.load().metadata_location == before
    assert [one["table"] for one in table("table", "list", "--json").lines] == ["db.flights"]


def test_each_property_of_the_reference_can_be_set_and_no_other_one_of_frazil() -> None:
    rows = Path("docs/reference/ledger.md").read_text(encoding="utf-8").splitlines()
    told = {key for row in rows if "set by you" in row for key in _OURS.findall(row.split("|")[1])}
    assert told == {key for key in _KNOWN if key.startswith("frazil.")}


def test_a_property_that_the_catalog_cannot_name_is_refused_and_nothing_is_made(
    table: Frazil, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = replace(SqlCatalog.capabilities, property_key_chars_max=256)
    monkeypatch.setattr(SqlCatalog, "capabilities", short)
    before = table.load().metadata_location
    for command in (
        ("table", "set", "db.flights", f"{'x' * 257}=1"),
        ("table", "create", "other.other", "--schema", "id long", "--property", f"{'x' * 257}=1"),
    ):
        answer = table(*command)
        assert (answer.code, answer.out) == (2, "")
        assert "its name has 257 characters, and a SQL database takes 256" in answer.err
    assert table("table", "set", "db.flights", f"{'x' * 256}=1").code == 0
    assert table.load().metadata_location != before
    assert [one["table"] for one in table("table", "list", "--json").lines] == ["db.flights"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "expected KEY=VALUE, or --unset KEY"),
        (("a=1", "--unset", "a"), "`a` is to be set and to be removed"),
        (("a=1", "a=2"), "`a` is there twice"),
        (("--unset", property_key("query-1")), "belongs to the ledger"),
        (("--unset", "frazil.expire.enable"), "did you mean `frazil.expire.enabled`?"),
        (("write.data.path=file:///{home}",), "an engine's orphan clean-up could remove requests"),
        (("write.data.path=file:///elsewhere",), "expected a folder in file://"),
        (
            ("frazil.unsigned-operations=apend",),
            "operations with commas between them, found `apend`",
        ),
    ],
)
def test_a_change_that_cannot_be_meant_is_refused(
    table: Frazil, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    home = str(tmp_path).lstrip("/")
    answer = table("table", "set", "db.flights", *(one.format(home=home) for one in arguments))
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err


def test_a_table_that_is_not_there_is_exit_code_1(table: Frazil) -> None:
    assert table("table", "set", "db.none", "a=1").code == 1


def test_a_commit_that_comes_first_is_kept(table: Frazil, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another commit gets between the reading and the swap, once: the change is made on top."""
    swap, identifier = SqlCatalog.swap, table.load().identifier
    between: list[str] = []

    async def swap_behind_another(self: SqlCatalog, meant: Swap) -> SwapAnswer:
        monkeypatch.setattr(SqlCatalog, "swap", swap)

        async def other(parts: Parts) -> None:
            async def decide(_: object) -> list[SetProperties]:
                return [SetProperties({"other": "1"})]

            await change_table(parts.catalog, parts.storage, parts.world, identifier, decide)

        parts = await open_parts(load_settings())
        await other(parts)
        await parts.close()
        answer = await swap(self, meant)
        between.append(type(answer).__name__)
        return answer

    monkeypatch.setattr(SqlCatalog, "swap", swap_behind_another)
    assert table("table", "set", "db.flights", "a=1").code == 0
    assert between == [Conflict.__name__]
    found = properties(table)
    assert (found["other"], found["a"]) == ("1", "1")


def test_the_properties_of_a_new_table_are_what_may_be_set() -> None:
    for key, text in NEW_TABLE_PROPERTIES.items():
        assert _KNOWN[key][1](text), key
