"""The options of a compaction, checked. Values only: nothing is looked up.

Names and defaults are those of Iceberg's `rewrite_data_files`, but for `partial-progress.enabled`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast, get_args

from committer.errors import SettingsError
from committer.iceberg.expressions.expression import ALWAYS_TRUE, Expression
from committer.iceberg.expressions.where_text import parse_where
from committer.ledger_entry import MAIN
from workers.compaction.rewrite_groups import RewriteSizes
from workers.settings.option_values import (
    choice,
    flag,
    positive,
    refuse_unknown,
    seconds,
    table_name,
    whole_number,
)
from workers.settings.worker_setting_names import is_setting

Strategy = Literal["binpack", "sort", "zorder"]
_TARGET = "write.target-file-size-bytes"
_TARGET_BYTES = 512 << 20
_SMALLEST, _LARGEST = 0.75, 1.8
_COMMITS_MAX, _AT_ONCE = 10, 5
_WAIT_TIMEOUT_S = 300.0
_SIZES = (
    "target-file-size-bytes",
    "min-file-size-bytes",
    "max-file-size-bytes",
    "max-file-group-size-bytes",
    "min-input-files",
    "delete-file-threshold",
    "delete-ratio-threshold",
    "rewrite-all",
)
_KNOWN = frozenset(
    {
        *_SIZES,
        "branch",
        "max-concurrent-file-group-rewrites",
        "output-spec-id",
        "partial-progress.enabled",
        "partial-progress.max-commits",
        "remove-dangling-deletes",
        "use-starting-sequence-number",
        "wait_timeout_s",
    }
)


@dataclass(frozen=True, slots=True)
class RewriteOptions:
    """`settings`: those that say where catalog, inbox and queue are. `sizes`: the options of sizes,
    which the table's properties complete. `commits_max`: as how many requests the groups land; None
    as one, whole or not at all. `output_spec_id` None: of the table's current spec.
    `numbers_anew`: new files get a new sequence number, so that deletes by value which others have
    begun before it do not apply to them.
    """

    table: str
    strategy: Strategy
    settings: Mapping[str, str]
    sizes: Mapping[str, str]
    where: Expression = ALWAYS_TRUE
    sort_order: str | None = None
    zorder_columns: tuple[str, ...] = ()
    branch: str = MAIN
    commits_max: int | None = _COMMITS_MAX
    groups_at_once: int = _AT_ONCE
    output_spec_id: int | None = None
    numbers_anew: bool = False
    removes_dangling_deletes: bool = False
    wait_timeout_s: float = _WAIT_TIMEOUT_S


def parse_rewrite_options(
    table: str,
    strategy: str,
    where: str | Expression | None,
    sort_order: str | None,
    zorder_columns: tuple[str, ...],
    options: Mapping[str, object],
) -> RewriteOptions:
    """Check the options. Errors: `SettingsError` naming the option; `InvalidFilterError`."""
    given = {name.lower(): option_text(value) for name, value in options.items()}
    refuse_unknown(given, _KNOWN, ())
    _check_strategy(strategy, sort_order, zorder_columns)
    is_partial = choice(given, "partial-progress.enabled", ("true", "false")) == "true"
    numbering = choice(given, "use-starting-sequence-number", ("true", "false"))
    return RewriteOptions(
        table_name(table),
        cast(Strategy, strategy),
        {name: value for name, value in given.items() if value and is_setting(name)},
        {name: given[name] for name in _SIZES if name in given},
        parse_where(where) if isinstance(where, str) else where or ALWAYS_TRUE,
        sort_order,
        zorder_columns,
        given.get("branch") or MAIN,
        positive(given, "partial-progress.max-commits", _COMMITS_MAX) if is_partial else None,
        positive(given, "max-concurrent-file-group-rewrites", _AT_ONCE),
        whole_number(given, "output-spec-id"),
        numbering == "false",
        flag(given, "remove-dangling-deletes"),
        seconds(given, "wait_timeout_s", _WAIT_TIMEOUT_S),
    )


def option_text(value: object) -> str:
    """Return a value as Spark writes it in an option."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _check_strategy(strategy: str, sort_order: str | None, zorder: tuple[str, ...]) -> None:
    known = get_args(Strategy)
    if strategy not in known:
        raise SettingsError(f"`strategy`: expected {', '.join(known)}, found `{strategy}`")
    if sort_order is not None and strategy != "sort":
        raise SettingsError(f"`sort_order` is of strategy `sort`, not of `{strategy}`")
    if bool(zorder) != (strategy == "zorder"):
        raise SettingsError("`zorder_columns` and strategy `zorder` need each other")


def rewrite_sizes(options: RewriteOptions, properties: Mapping[str, str]) -> RewriteSizes:
    """Complete the sizes by the table's properties. Errors: `SettingsError` naming the option."""
    return sizes_of(options.sizes, whole_number(properties, _TARGET) or _TARGET_BYTES)


def sizes_of(given: Mapping[str, str], own_target_bytes: int) -> RewriteSizes:
    """Read the options of sizes. `own_target_bytes`: the table's size of such files.
    Errors: `SettingsError` naming the option."""
    target = positive(given, "target-file-size-bytes", own_target_bytes)
    smallest = whole_number(given, "min-file-size-bytes")
    largest = whole_number(given, "max-file-size-bytes")
    usual = RewriteSizes(target, int(target * _SMALLEST), int(target * _LARGEST))
    sizes = RewriteSizes(
        target,
        usual.min_bytes if smallest is None else smallest,
        usual.max_bytes if largest is None else largest,
        positive(given, "max-file-group-size-bytes", usual.group_bytes),
        positive(given, "min-input-files", usual.input_files),
        positive(given, "delete-file-threshold", usual.delete_files),
        _ratio(given, "delete-ratio-threshold", usual.delete_ratio),
        choice(given, "rewrite-all", ("false", "true")) == "true",
    )
    if not sizes.min_bytes < target < sizes.max_bytes:
        raise SettingsError(
            "options of sizes: expected `min-file-size-bytes` below `target-file-size-bytes` below"
            f" `max-file-size-bytes`, found {sizes.min_bytes}, {target} and {sizes.max_bytes}"
        )
    return sizes


def _ratio(given: Mapping[str, str], name: str, usual: float) -> float:
    text = given.get(name)
    try:
        found = usual if text is None else float(text)
    except ValueError:
        found = 0.0
    if not 0 < found <= 1:
        raise SettingsError(f"option `{name}`: expected a part of 1, found `{text}`")
    return found
