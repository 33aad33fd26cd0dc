from __future__ import annotations

import pytest

from committer.errors import SettingsError
from workers.settings.create_options import CreateOptions
from workers.settings.options import parse_options


def test_the_table_comes_from_its_option_or_from_the_path() -> None:
    assert parse_options({"table": "db.t"}, streaming=True).table == "db.t"
    assert parse_options({"path": "db.t"}, streaming=True).table == "db.t"
    assert parse_options({"path": "db.t", "Table": "db.t"}, streaming=False).table == "db.t"


def test_what_spark_adds_is_no_unknown_option() -> None:
    options = {"table": "a.b.t", "checkpointLocation": "/c", "queryName": "q"}
    parsed = parse_options(options, streaming=True)
    assert (parsed.table, parsed.checkpoint, parsed.query_name) == ("a.b.t", "/c", "q")


def test_defaults_are_the_safe_ones() -> None:
    parsed = parse_options({"table": "db.t"}, streaming=True)
    assert (parsed.on_quarantine, parsed.wait, parsed.sink) == ("fail", "durable", "")


def test_how_far_a_committer_may_be_behind_is_chosen() -> None:
    parsed = parse_options(
        {"table": "db.t", "backlog_max": "100", "backlog_wait_s": "2.5"}, streaming=True
    )
    assert (parsed.backlog_max, parsed.backlog_wait_s) == (100, 2.5)


def test_settings_are_passed_on() -> None:
    options = {"table": "db.t", "Catalog.Uri": "sqlite:////c.db", "inbox": "file:/i"}
    settings = parse_options(options, streaming=True).settings
    assert settings == {"catalog.uri": "sqlite:////c.db", "inbox": "file:/i"}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, r"option `table` is missing: .*save\(.*start\(.*`toTable`.*VIEW .*INSERT INTO"),
        ({"table": "db.t", "option.table": "db.t"}, "catalog cannot be `USING frazil`: .*save"),
        ({"table": "flights"}, "expected a name such as `db.flights`"),
        ({"table": "/tmp/db.flights"}, "expected a name such as `db.flights`"),
        ({"table": "db.a", "path": "db.b"}, "give one"),
        ({"table": "db.t", "tabel": "x"}, r"unknown option `tabel` .*expected .*table"),
        ({"table": "db.t", "wait": "never"}, "`wait`: expected `durable` or `committed`"),
        ({"table": "db.t", "on_quarantine": "x"}, "expected `fail` or `continue`"),
        ({"table": "db.t", "wait_timeout_s": "soon"}, "`wait_timeout_s`: expected a number"),
        ({"table": "db.t", "wait_timeout_s": "nan"}, "`wait_timeout_s`: expected a number"),
        ({"table": "db.t", "backlog_max": "few"}, "`backlog_max`: expected a whole number"),
        ({"table": "db.t", "backlog_wait_s": "-1"}, "`backlog_wait_s`: expected a number"),
        ({"table": "db.t", "producer": "p"}, "`producer` and `epoch` .*go together"),
        ({"table": "db.t", "epoch": "1"}, "`producer` and `epoch` .*go together"),
        ({"table": "db.t", "producer": "p", "epoch": "-1"}, "`epoch`: expected a whole number"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, str], problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        parse_options(options, streaming=False)


def test_a_streaming_query_does_not_choose_its_epochs() -> None:
    with pytest.raises(SettingsError, match=r"`epoch`.*batch id"):
        parse_options({"table": "db.t", "producer": "p", "epoch": "1"}, streaming=True)


def test_a_write_may_create_its_table_with_a_layout() -> None:
    given = {
        "table": "db.t",
        "create": "true",
        "partition-by": "days(at)",
        "sort-by": "id desc",
        "location": "s3://lake/t",
        "Table-Property.write.format.default": "orc",
    }
    created = parse_options(given, streaming=True).create
    properties = {"write.format.default": "orc"}
    assert created == CreateOptions("days(at)", "id desc", "s3://lake/t", properties)
    assert parse_options({"table": "db.t"}, streaming=False).create is None


@pytest.mark.parametrize("name", ["partition-by", "sort-by", "location", "table-property.a"])
def test_the_layout_of_a_table_that_is_not_created_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match=rf"`{name}` .* needs option\(\"create\", \"true\"\)"):
        parse_options({"table": "db.t", name: "x"}, streaming=False)


@pytest.mark.parametrize("name", ["mergeSchema", "merge-schema", "union-by-name"])
def test_all_names_of_a_union_are_known(name: str) -> None:
    assert parse_options({"table": "db.t", name: "true"}, streaming=True).union_by_name
    assert not parse_options({"table": "db.t", name: "false"}, streaming=True).union_by_name


def test_a_write_may_name_a_branch_and_ask_for_order_and_no_nulls() -> None:
    options = {"table": "db.t", "branch": "audit", "check-ordering": "true"}
    parsed = parse_options({**options, "check-nullability": "TRUE"}, streaming=False)
    assert (parsed.branch, parsed.check_ordering, parsed.check_nullability) == ("audit", True, True)


def test_a_write_may_name_the_format_of_its_files() -> None:
    for given, found in (("Parquet", "parquet"), ("ORC", "orc"), ("avro", "avro"), ("", "")):
        options = parse_options({"table": "db.t", "write-format": given}, streaming=True)
        assert options.write_format == found
    with pytest.raises(SettingsError, match=r"`write-format`: expected one of .*, found `csv`"):
        parse_options({"table": "db.t", "write-format": "csv"}, streaming=False)
