"""What a caller may say of a rewrite of delete files, by Iceberg's names."""

from __future__ import annotations

from typing import Any

import pytest

from committer.errors import SettingsError
from workers.compaction.deletes.deletes_options import (
    DeletesOptions,
    Purpose,
    parse_deletes_options,
)

MIB = 1 << 20


def parsed(purpose: Purpose = "join positions", **options: object) -> DeletesOptions:
    given = {name.replace("__", ".").replace("_", "-"): text for name, text in options.items()}
    return parse_deletes_options(purpose, "db.t", None, given)


def test_the_sizes_without_options_are_icebergs_of_delete_files() -> None:
    sizes = parsed().sizes({})
    assert (sizes.target_bytes, sizes.min_bytes, sizes.input_files) == (64 * MIB, 48 * MIB, 5)
    own = {"write.delete.target-file-size-bytes": "1000", "write.target-file-size-bytes": "7"}
    assert parsed().sizes(own).max_bytes == 1800
    assert parsed(target_file_size_bytes=2000).sizes(own).target_bytes == 2000


def test_the_table_says_what_a_position_delete_file_is_for_and_the_option_is_stronger() -> None:
    own = {"write.delete.granularity": "file"}
    assert (parsed().granularity({}), parsed().granularity(own)) == ("partition", "file")
    assert parsed(delete_granularity="partition").granularity(own) == "partition"


def test_a_conversion_has_no_sizes_and_a_least_number_of_files() -> None:
    assert parsed("convert equality").files_min == 1
    assert parsed("convert equality", min_input_files=7).files_min == 7
    assert parsed("convert equality", partial_progress__enabled=False).commits_max is None
    with pytest.raises(SettingsError, match="target-file-size-bytes"):
        parsed("convert equality", target_file_size_bytes=5)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"min_input_files": 0}, "min-input-files"),
        ({"target_file_size_bytes": 10, "min_file_size_bytes": 10}, "min-file-size-bytes"),
        ({"rewrite_all": "perhaps"}, "rewrite-all"),
        ({"delete_granularity": "row"}, "delete-granularity"),
        ({"delete_file_threshold": 1}, "delete-file-threshold"),
        ({"partial_progress__max_commits": 0}, "partial-progress.max-commits"),
    ],
)
def test_an_option_that_is_wrong_is_named(options: dict[str, Any], named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        parsed(**options)
