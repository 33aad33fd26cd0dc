from __future__ import annotations

import pytest

from committer.errors import SettingsError
from workers.settings.options import WriteOptions, parse_options
from workers.settings.overwrite_options import OverwriteOptions


def parsed(*, streaming: bool = False, overwrite: bool = True, **options: str) -> WriteOptions:
    given = {name.replace("__", "-"): value for name, value in options.items()}
    return parse_options({"table": "db.t", **given}, streaming=streaming, overwrite=overwrite)


def test_an_overwrite_replaces_the_whole_table_unless_told_otherwise() -> None:
    assert parsed().overwrite == OverwriteOptions("static", None, None, None)
    assert parsed(overwrite=False).overwrite is None


def test_the_options_of_iceberg_are_read() -> None:
    found = parsed(
        overwrite__filter="id > 1", isolation__level="SNAPSHOT", validate__from__snapshot__id="7"
    ).overwrite
    assert found == OverwriteOptions("static", "id > 1", "snapshot", 7)
    dynamic = parsed(overwrite__mode="Dynamic", isolation__level="serializable").overwrite
    assert dynamic == OverwriteOptions("dynamic", None, "serializable", None)


def test_complete_mode_replaces_the_whole_table() -> None:
    assert parsed(streaming=True).overwrite == OverwriteOptions()


@pytest.mark.parametrize(
    ("streaming", "overwrite", "options", "wait", "on_conflict"),
    [
        # Whoever may be told of a conflict, and can run again, waits for the answer.
        (False, True, {}, "committed", "fail"),
        (False, True, {"wait": "durable"}, "durable", "quarantine"),
        (False, True, {"on_conflict": "quarantine"}, "committed", "quarantine"),
        (False, False, {}, "durable", "quarantine"),
        (True, True, {}, "durable", "quarantine"),
        (True, True, {"wait": "committed", "on_conflict": "fail"}, "committed", "fail"),
    ],
)
def test_a_conflict_is_told_to_those_who_wait(
    streaming: bool, overwrite: bool, options: dict[str, str], wait: str, on_conflict: str
) -> None:
    found = parsed(streaming=streaming, overwrite=overwrite, **options)
    assert (found.wait, found.on_conflict) == (wait, on_conflict)


@pytest.mark.parametrize(
    ("streaming", "overwrite", "options", "problem"),
    [
        (False, True, {"overwrite__mode": "all"}, "expected `static` or `dynamic`"),
        (False, True, {"overwrite__mode": "dynamic", "overwrite__filter": "a = 1"}, "the rows say"),
        (False, True, {"isolation__level": "none"}, "expected `serializable` or `snapshot`"),
        (False, True, {"validate__from__snapshot__id": "7"}, "expected `isolation-level` with it"),
        (False, False, {"overwrite__mode": "dynamic"}, r"expected mode\(.overwrite.\)"),
        (True, False, {"isolation__level": "snapshot"}, "a streaming query appends"),
        (True, True, {"overwrite__filter": "a = 1"}, r"outputMode\(.complete.\) replaces"),
        (False, True, {"wait": "durable", "on_conflict": "fail"}, "has to wait for the answer"),
        (False, True, {"mergeSchema": "true"}, "only an append brings columns along"),
        (False, False, {"union-by-name": "true", "upsert__keys": "id"}, "only an append brings"),
        (True, True, {"upsert__keys": "id"}, "an upsert replaces rows by their keys"),
        (True, True, {"on_conflict": "fail"}, "has to wait for the answer"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(
    streaming: bool, overwrite: bool, options: dict[str, str], problem: str
) -> None:
    with pytest.raises(SettingsError, match=problem):
        parsed(streaming=streaming, overwrite=overwrite, **options)
