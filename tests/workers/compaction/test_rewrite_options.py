"""What a caller may say of a compaction, by Iceberg's names, and what it means with the table's
properties."""

from __future__ import annotations

from typing import Any

import pytest

from committer.errors import InvalidFilterError, SettingsError
from workers.compaction.rewrite_options import (
    RewriteOptions,
    parse_rewrite_options,
    rewrite_sizes,
)

MIB = 1 << 20


def parsed(strategy: str = "binpack", **options: object) -> RewriteOptions:
    given = {name.replace("__", ".").replace("_", "-"): text for name, text in options.items()}
    return parse_rewrite_options("db.t", strategy, None, None, (), given)


def test_the_sizes_without_options_are_icebergs() -> None:
    sizes = rewrite_sizes(parsed(), {})
    assert (sizes.target_bytes, sizes.min_bytes) == (512 * MIB, 384 * MIB)
    assert (sizes.max_bytes, sizes.written_bytes) == (966367641, 751619276)
    assert (sizes.group_bytes, sizes.input_files) == (100 * 1024 * MIB, 5)
    assert (sizes.delete_files, sizes.delete_ratio, sizes.rewrites_all) == (2**31 - 1, 0.3, False)


def test_the_tables_target_is_the_default_and_the_option_stronger() -> None:
    properties = {"write.target-file-size-bytes": "1000"}
    assert rewrite_sizes(parsed(), properties).min_bytes == 750
    found = rewrite_sizes(parsed(target_file_size_bytes=2000, rewrite_all=True), properties)
    assert (found.target_bytes, found.max_bytes, found.rewrites_all) == (2000, 3600, True)


def test_options_are_said_as_in_icebergs_procedure() -> None:
    found = parsed(
        min_input_files="2",
        max_concurrent_file_group_rewrites=3,
        use_starting_sequence_number=False,
        output_spec_id=0,
        partial_progress__enabled="true",
        partial_progress__max_commits=4,
        branch="b",
    )
    assert (found.sizes, found.branch) == ({"min-input-files": "2"}, "b")
    assert (found.groups_at_once, found.numbers_anew, found.output_spec_id) == (3, True, 0)
    assert found.commits_max == 4
    assert parsed().commits_max == 10
    assert parsed(partial_progress__enabled=False).commits_max is None


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"min_input_files": 0}, "min-input-files"),
        ({"target_file_size_bytes": 10, "min_file_size_bytes": 10}, "min-file-size-bytes"),
        ({"target_file_size_bytes": 10, "max_file_size_bytes": 10}, "max-file-size-bytes"),
        ({"delete_ratio_threshold": "much"}, "delete-ratio-threshold"),
        ({"delete_ratio_threshold": 0}, "delete-ratio-threshold"),
        ({"rewrite_all": "perhaps"}, "rewrite-all"),
        ({"target_size": 1}, "target-size"),
        ({"partial_progress__max_commits": 0}, "partial-progress.max-commits"),
    ],
)
def test_an_option_that_is_wrong_is_named(options: dict[str, Any], named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        rewrite_sizes(parsed(**options), {})


def test_a_strategy_has_its_own_order() -> None:
    def told(strategy: str, order: str | None, columns: tuple[str, ...]) -> RewriteOptions:
        return parse_rewrite_options("db.t", strategy, None, order, columns, {})

    assert told("sort", "id", ()).sort_order == "id"
    assert told("zorder", None, ("id",)).zorder_columns == ("id",)
    wrong = (("binpack", "id", ()), ("zorder", None, ()), ("sort", None, ("id",)), ("pack", "", ()))
    for each in wrong:
        with pytest.raises(SettingsError):
            told(*each)
    with pytest.raises(InvalidFilterError):
        parse_rewrite_options("db.t", "binpack", "id =", None, (), {})
