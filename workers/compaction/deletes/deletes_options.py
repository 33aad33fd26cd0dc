"""The options of a rewrite of delete files, checked. Values only: nothing is looked up.

Names and defaults are those of Iceberg's `rewrite_position_delete_files`, but for
`partial-progress.enabled`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from committer.iceberg.expressions.expression import ALWAYS_TRUE, Expression
from committer.iceberg.expressions.where_text import parse_where
from committer.ledger_entry import MAIN
from workers.compaction.rewrite_groups import RewriteSizes
from workers.compaction.rewrite_options import RewriteOptions, option_text, sizes_of
from workers.settings.option_values import (
    choice,
    positive,
    refuse_unknown,
    seconds,
    table_name,
    whole_number,
)
from workers.settings.worker_setting_names import is_setting

# Which delete files are rewritten, and as what.
Purpose = Literal["join positions", "convert equality"]
Granularity = Literal["file", "partition"]
_TARGET = "write.delete.target-file-size-bytes"
_TARGET_BYTES = 64 << 20
_GRANULARITY = "write.delete.granularity"
_COMMITS_MAX, _AT_ONCE = 10, 5
_WAIT_TIMEOUT_S = 300.0
_OF_BOTH = frozenset(
    {
        "branch",
        "delete-granularity",
        "max-concurrent-file-group-rewrites",
        "min-input-files",
        "partial-progress.enabled",
        "partial-progress.max-commits",
        "wait_timeout_s",
    }
)
_SIZES = frozenset(
    {
        "target-file-size-bytes",
        "min-file-size-bytes",
        "max-file-size-bytes",
        "max-file-group-size-bytes",
        "rewrite-all",
    }
)


@dataclass(frozen=True, slots=True)
class DeletesOptions:
    """`settings`: those that say where catalog, inbox and queue are. `given`: the options of sizes,
    which the table's properties complete. `commits_max`: as how many requests the groups land; None
    as one, whole or not at all. `where`: of the partitions whose deletes are rewritten."""

    purpose: Purpose
    table: str
    settings: Mapping[str, str]
    given: Mapping[str, str]
    where: Expression = ALWAYS_TRUE
    branch: str = MAIN
    commits_max: int | None = _COMMITS_MAX
    groups_at_once: int = _AT_ONCE
    wait_timeout_s: float = _WAIT_TIMEOUT_S

    def sizes(self, properties: Mapping[str, str]) -> RewriteSizes:
        """Complete the sizes by the table's. Errors: `SettingsError` naming the option."""
        return sizes_of(self.given, whole_number(properties, _TARGET) or _TARGET_BYTES)

    @property
    def files_min(self) -> int:
        """How many equality delete files are worth a conversion."""
        return positive(self.given, "min-input-files", 1)

    def granularity(self, properties: Mapping[str, str]) -> Granularity:
        """Return what a new position delete file is for. Errors: `SettingsError`."""
        usual = properties.get(_GRANULARITY, "partition").lower()
        given = {"delete-granularity": self.given.get("delete-granularity", usual)}
        is_for_one = choice(given, "delete-granularity", ("partition", "file")) == "file"
        return "file" if is_for_one else "partition"


def parse_deletes_options(
    purpose: Purpose, table: str, where: str | None, options: Mapping[str, object]
) -> DeletesOptions:
    """Check the options. Errors: `SettingsError` naming the option; `InvalidFilterError`."""
    given = {name.lower(): option_text(value) for name, value in options.items()}
    refuse_unknown(given, _OF_BOTH | (_SIZES if purpose == "join positions" else set()), ())
    is_partial = choice(given, "partial-progress.enabled", ("true", "false")) == "true"
    found = DeletesOptions(
        purpose,
        table_name(table),
        {name: value for name, value in given.items() if value and is_setting(name)},
        {name: text for name, text in given.items() if not is_setting(name)},
        ALWAYS_TRUE if where is None else parse_where(where),
        given.get("branch") or MAIN,
        positive(given, "partial-progress.max-commits", _COMMITS_MAX) if is_partial else None,
        positive(given, "max-concurrent-file-group-rewrites", _AT_ONCE),
        seconds(given, "wait_timeout_s", _WAIT_TIMEOUT_S),
    )
    # Options that are wrong for any table are refused before the table is read.
    found.sizes({})
    found.granularity({})
    return found


def conversion_of(compaction: RewriteOptions, files_min: int) -> DeletesOptions:
    """Return the conversion of equality deletes that a job does beside its compaction, where there
    are so many files of them."""
    return DeletesOptions(
        "convert equality",
        compaction.table,
        compaction.settings,
        {"min-input-files": str(files_min)},
        compaction.where,
        compaction.branch,
        groups_at_once=compaction.groups_at_once,
        wait_timeout_s=compaction.wait_timeout_s,
    )
