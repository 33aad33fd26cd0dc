"""The options of a change."""

from __future__ import annotations

import pytest

from committer.errors import SettingsError
from workers.changes.change_options import ChangeOptions, parse_change_options
from workers.settings.wap import WapOptions


def test_options_are_checked_and_settings_kept() -> None:
    given = {"Branch": "audit", "retries": 3, "wait_timeout_s": 1.5, "inbox": "s3://b/r"}
    assert parse_change_options("db.t", given) == ChangeOptions(
        "db.t", {"inbox": "s3://b/r"}, "audit", 3, 1.5
    )
    assert parse_change_options("db.t", {}) == ChangeOptions("db.t", {}, None, 0, 300.0)
    staged = parse_change_options("db.t", {"wap_id": "w", "stage_only": True})
    assert staged.wap == WapOptions("w", True)
    merged = parse_change_options("db.t", {"merge-schema": "TRUE"}, is_merge=True)
    assert merged == ChangeOptions("db.t", {}, evolves_schema=True)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"retry": 1}, "unknown option `retry`"),
        ({"mergeSchema": True}, "unknown option `mergeschema`"),
        ({"catalog.urii": "x"}, "setting `catalog.urii`: there is no such setting"),
        ({"retries": "many"}, "option `retries`: expected a whole number"),
        ({"retries": 101}, "option `retries`: expected 100 at most"),
        ({"wait_timeout_s": -1}, "option `wait_timeout_s`"),
    ],
)
def test_an_option_that_does_not_fit_is_named(options: dict[str, object], problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        parse_change_options("db.t", options)


def test_a_name_needs_its_namespace() -> None:
    with pytest.raises(SettingsError, match="expected a name such as"):
        parse_change_options("flights", {})
