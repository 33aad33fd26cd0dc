"""The options of a read with `format("frazil")`, checked. Values only: nothing is looked up.

Names are those of Iceberg's own runtime where it has the option.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from committer.errors import SettingsError
from committer.iceberg.expressions.expression import ALWAYS_TRUE, Expression
from committer.iceberg.expressions.where_text import parse_where
from committer.iceberg.reading.append_stream import StreamLimits, StreamStart
from committer.iceberg.values.calendar import read_time_ms
from workers.settings.foreign_options import with_own_names
from workers.settings.option_values import (
    flag,
    one_place,
    positive,
    refuse_unknown,
    table_name,
    whole_number,
)
from workers.settings.worker_setting_names import is_setting

_COLUMNS = ("columns", "filter", "metadata-columns")
_SIZES = ("split-size", "lookback", "file-open-cost")
_OF_BATCH = (
    "snapshot-id",
    "as-of-timestamp",
    "as-of",
    "tag",
    "start-snapshot-id",
    "end-snapshot-id",
    "push-filters",
)
_OF_STREAMS = (
    "starting-snapshot-id",
    "stream-from-timestamp",
    "streaming-max-files-per-micro-batch",
    "streaming-max-rows-per-micro-batch",
    "streaming-skip-delete-snapshots",
    "streaming-skip-overwrite-snapshots",
)
_FOR_ALL = ("table", "branch", *_COLUMNS, *_SIZES)
# Options that Spark itself adds or consumes.
_SPARKS = frozenset({"path", "provider", "owner"})


@dataclass(frozen=True, slots=True)
class TimeTravel:
    """The state of the table that is read: one of these, none for the current one.

    `after`, `up_to`: the rows that were appended after a snapshot, up to another one.
    """

    snapshot_id: int | None = None
    as_of_ms: int | None = None
    branch: str | None = None
    tag: str | None = None
    after: int | None = None
    up_to: int | None = None

    @property
    def names_head(self) -> bool:
        """Whether the options say which state is the newest that is read."""
        states = (self.snapshot_id, self.as_of_ms, self.branch, self.tag, self.up_to)
        return any(state is not None for state in states)


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """The options of a stream."""

    start: StreamStart = field(default_factory=StreamStart)
    limits: StreamLimits = field(default_factory=StreamLimits)
    skip_deletes: bool = False
    skip_overwrites: bool = False


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The checked options. `settings` are those that say where the catalog is.

    `columns` None: all of them; `metadata_columns` stand behind. Sizes None: the table's own.
    """

    table: str
    settings: Mapping[str, str]
    travel: TimeTravel = field(default_factory=TimeTravel)
    stream: StreamOptions = field(default_factory=StreamOptions)
    columns: tuple[str, ...] | None = None
    metadata_columns: tuple[str, ...] = ()
    row_filter: Expression = ALWAYS_TRUE
    push_filters: bool = False
    split_size: int | None = None
    lookback: int | None = None
    file_open_cost: int | None = None


def parse_read_options(options: Mapping[str, str], *, streaming: bool | None) -> ReadOptions:
    """Parse the options of a read. `streaming` None: it is not known yet which kind it is.
    Errors: `SettingsError` naming the option, `InvalidFilterError` for text that is no filter."""
    lowered = {name.lower(): value for name, value in options.items()}
    given = with_own_names(lowered, is_read=True)
    _refuse_misplaced(given, streaming=streaming)
    columns = _names(given, "columns")
    return ReadOptions(
        table=_table(given),
        settings={name: value for name, value in given.items() if value and is_setting(name)},
        travel=_time_travel(given),
        stream=_stream(given),
        columns=columns or None,
        metadata_columns=_names(given, "metadata-columns"),
        row_filter=parse_where(given["filter"]) if given.get("filter") else ALWAYS_TRUE,
        push_filters=flag(given, "push-filters"),
        split_size=positive(given, "split-size", None),
        lookback=positive(given, "lookback", None),
        file_open_cost=whole_number(given, "file-open-cost"),
    )


def _refuse_misplaced(given: Mapping[str, str], *, streaming: bool | None) -> None:
    refuse_unknown(given, (*_FOR_ALL, *_OF_BATCH, *_OF_STREAMS), _SPARKS)
    if streaming is None:
        return
    for name in _OF_BATCH if streaming else _OF_STREAMS:
        if name in given:
            kind, other = ("read", "readStream") if streaming else ("readStream", "read")
            raise SettingsError(f"option `{name}` is for spark.{kind}, not for spark.{other}")


def _table(given: Mapping[str, str]) -> str:
    """Return the table's name: the option, or the argument of `load`."""
    table = one_place(given)
    if not table:
        raise SettingsError(
            'option `table` is missing: name the table in spark.read.format("frazil")'
            '.load("db.flights"), a metadata table in load("db.flights$files"). `spark.table` and'
            " `read.table` read a table of Spark's own catalog, whose options do not reach the"
            " reader. In SQL: CREATE TEMPORARY VIEW v USING frazil OPTIONS (table 'db.flights')"
        )
    return table_name(table)


def _time_travel(given: Mapping[str, str]) -> TimeTravel:
    _refuse_several(given, ("snapshot-id", "as-of-timestamp", "as-of", "branch", "tag"))
    for name in ("start-snapshot-id", "end-snapshot-id"):
        _refuse_several(given, (name, "snapshot-id"))
        _refuse_several(given, (name, "as-of-timestamp"))
        _refuse_several(given, (name, "as-of"))
        _refuse_several(given, (name, "tag"))
    _refuse_several(given, ("end-snapshot-id", "branch"))
    after, up_to = whole_number(given, "start-snapshot-id"), whole_number(given, "end-snapshot-id")
    if after is None and up_to is not None:
        raise SettingsError(
            "option `end-snapshot-id` needs `start-snapshot-id`: the rows that were appended after"
            " it are read"
        )
    return TimeTravel(
        snapshot_id=whole_number(given, "snapshot-id"),
        as_of_ms=_as_of_ms(given),
        branch=given.get("branch") or None,
        tag=given.get("tag") or None,
        after=after,
        up_to=up_to,
    )


def _refuse_several(given: Mapping[str, str], names: Collection[str]) -> None:
    found = [name for name in names if name in given]
    if len(found) > 1:
        raise SettingsError(
            f"options `{'` and `'.join(found)}` exclude each other: each names a state of the table"
        )


def _as_of_ms(given: Mapping[str, str]) -> int | None:
    if (found_ms := whole_number(given, "as-of-timestamp")) is not None or "as-of" not in given:
        return found_ms
    try:
        return read_time_ms(given["as-of"])
    except ValueError as error:
        raise SettingsError(f"option `as-of`: {error}") from None


def _stream(given: Mapping[str, str]) -> StreamOptions:
    _refuse_several(given, ("starting-snapshot-id", "stream-from-timestamp"))
    start = StreamStart(
        whole_number(given, "starting-snapshot-id"), whole_number(given, "stream-from-timestamp")
    )
    return StreamOptions(
        start,
        StreamLimits(
            positive(given, "streaming-max-files-per-micro-batch", None),
            positive(given, "streaming-max-rows-per-micro-batch", None),
        ),
        flag(given, "streaming-skip-delete-snapshots"),
        flag(given, "streaming-skip-overwrite-snapshots"),
    )


def _names(given: Mapping[str, str], name: str) -> tuple[str, ...]:
    """Read names between commas."""
    return tuple(part for each in given.get(name, "").split(",") if (part := each.strip()))
