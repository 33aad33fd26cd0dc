"""The options of a write with `format("frazil")`, checked. Values only: nothing is looked up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

from committer.errors import SettingsError
from workers.settings.create_options import (
    CREATE_OPTIONS,
    CreateOptions,
    create_options,
    is_table_property,
)
from workers.settings.foreign_options import with_own_names
from workers.settings.option_values import (
    choice,
    flag,
    one_place,
    refuse_unknown,
    seconds,
    table_name,
    whole_number,
)
from workers.settings.overwrite_options import (
    OVERWRITE_OPTIONS,
    OverwriteOptions,
    overwrite_options,
    refuse_overwrite_options,
)
from workers.settings.upsert_options import KEYS, UPSERT_OPTIONS, upsert_options
from workers.settings.wap import NO_WAP_OPTIONS, WAP_OPTIONS, WapOptions, wap_options
from workers.settings.worker_setting_names import is_setting
from workers.upserts.upsert import Upsert

Wait = Literal["durable", "committed"]
OnQuarantine = Literal["fail", "continue"]
OnConflict = Literal["quarantine", "fail"]

_FORMAT = "write-format"
_FORMATS = ("parquet", "orc", "avro")
_OURS = frozenset(
    {
        "table",
        "sink",
        "producer",
        "epoch",
        "on_quarantine",
        "wait",
        "wait_timeout_s",
        "backlog_max",
        "backlog_wait_s",
        "branch",
        "distribution-mode",
        "union-by-name",
        "merge-schema",
        "check-ordering",
        "check-nullability",
        _FORMAT,
        "on_conflict",
        *CREATE_OPTIONS,
        *OVERWRITE_OPTIONS,
        *UPSERT_OPTIONS,
        *WAP_OPTIONS,
    }
)
# Options that Spark itself adds or consumes.
_SPARKS = frozenset({"path", "checkpointlocation", "queryname", "provider", "owner"})
# Iceberg has two names for it besides ours.
_UNION = ("union-by-name", "merge-schema", "mergeschema")
_WAIT_TIMEOUT_S = 300.0
BACKLOG_MAX = 10_000
BACKLOG_WAIT_S = 60.0


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The checked options. `settings` are those that say where catalog, inbox and queue are;
    `create`: what to create if the table is not there; None: nothing. `overwrite`, `upsert`: which
    rows the new ones replace; an append has neither. `write_format`: of the files, by the word of
    `write.format.default`; empty: as the table says. `branch`: None: main, or the one that the
    session says (`wap.py`).
    """

    table: str
    settings: Mapping[str, str]
    sink: str = ""
    producer: str | None = None
    epoch: int | None = None
    on_quarantine: OnQuarantine = "fail"
    wait: Wait = "durable"
    wait_timeout_s: float = _WAIT_TIMEOUT_S
    backlog_max: int = BACKLOG_MAX
    backlog_wait_s: float = BACKLOG_WAIT_S
    checkpoint: str | None = None
    query_name: str | None = None
    branch: str | None = None
    wap: WapOptions = NO_WAP_OPTIONS
    union_by_name: bool = False
    check_ordering: bool = False
    check_nullability: bool = False
    create: CreateOptions | None = None
    overwrite: OverwriteOptions | None = None
    upsert: Upsert | None = None
    on_conflict: OnConflict = "quarantine"
    distribution_mode: str | None = None
    write_format: str = ""


def parse_options(
    options: Mapping[str, str], *, streaming: bool, overwrite: bool = False
) -> WriteOptions:
    """Parse the options of a write; `overwrite`: as Spark's mode says.
    Errors: `SettingsError` naming the option."""
    lowered = {name.lower(): value for name, value in options.items()}
    given = with_own_names(lowered, is_read=False)
    properties = filter(is_table_property, given)
    refuse_unknown(given, _OURS, {*_SPARKS, *_UNION, *properties})
    producer, epoch = given.get("producer") or None, whole_number(given, "epoch")
    backlog_max = whole_number(given, "backlog_max")
    if streaming and epoch is not None:
        raise SettingsError("option `epoch`: a streaming query's epoch is Spark's batch id")
    if not streaming and (producer is None) != (epoch is None):
        raise SettingsError(
            "options `producer` and `epoch` of a batch write go together: the epoch is the"
            " producer's own number of this write, so that a repeated write lands once"
        )
    upsert = upsert_options(given)
    union_by_name = any(flag(given, name) for name in _UNION)
    if union_by_name and (overwrite or upsert is not None):
        raise SettingsError(
            f"option `{_UNION[0]}`: only an append brings columns along: add them first"
            " (`frazil table evolve`)"
        )
    if overwrite and upsert is not None:
        raise SettingsError(
            f"option `{KEYS}`: an upsert replaces rows by their keys, this mode all of them: write"
            ' with mode("append") or outputMode("append")'
        )
    replaced = _replaced(given, streaming=streaming, overwrite=overwrite)
    wait, on_conflict = _answers(given, can_rerun=overwrite and not streaming)
    return WriteOptions(
        table=_table(given),
        settings={name: value for name, value in given.items() if value and is_setting(name)},
        sink=given.get("sink", ""),
        producer=producer,
        epoch=epoch,
        on_quarantine=cast(OnQuarantine, choice(given, "on_quarantine", ("fail", "continue"))),
        wait=wait,
        wait_timeout_s=seconds(given, "wait_timeout_s", _WAIT_TIMEOUT_S),
        backlog_max=BACKLOG_MAX if backlog_max is None else backlog_max,
        backlog_wait_s=seconds(given, "backlog_wait_s", BACKLOG_WAIT_S),
        checkpoint=given.get("checkpointlocation") or None,
        query_name=given.get("queryname") or None,
        branch=given.get("branch") or None,
        wap=wap_options(given),
        union_by_name=union_by_name,
        check_ordering=flag(given, "check-ordering"),
        check_nullability=flag(given, "check-nullability"),
        create=create_options(given),
        overwrite=replaced,
        upsert=upsert,
        on_conflict=on_conflict,
        distribution_mode=given.get("distribution-mode"),
        write_format=_format(given),
    )


def _format(given: Mapping[str, str]) -> str:
    found = given.get(_FORMAT, "").lower()
    if found and found not in _FORMATS:
        raise SettingsError(
            f"option `{_FORMAT}`: expected one of {', '.join(_FORMATS)}, found `{found}`"
        )
    return found


def _replaced(
    given: Mapping[str, str], *, streaming: bool, overwrite: bool
) -> OverwriteOptions | None:
    if overwrite and not streaming:
        return overwrite_options(given)
    if overwrite:
        refuse_overwrite_options(given, 'outputMode("complete") replaces the whole table')
        return OverwriteOptions()
    instead = "a streaming query appends" if streaming else 'expected mode("overwrite") with it'
    refuse_overwrite_options(given, instead)
    return None


def _answers(given: Mapping[str, str], *, can_rerun: bool) -> tuple[Wait, OnConflict]:
    """Return the state to wait for, and what is done with a request that conflicts.

    `can_rerun`: the write may conflict, and its caller can run it again. It waits for the answer
    by default. A request whose client does not wait is kept in quarantine.
    """
    wait = choice(
        given, "wait", ("committed", "durable") if can_rerun else ("durable", "committed")
    )
    can_rerun = can_rerun and wait == "committed"
    on_conflict = choice(
        given, "on_conflict", ("fail", "quarantine") if can_rerun else ("quarantine", "fail")
    )
    if on_conflict == "fail" and wait == "durable":
        raise SettingsError(
            "option `on_conflict`: `fail` keeps nothing of a request that conflicts, so the write"
            " has to wait for the answer: expected `wait` `committed` with it"
        )
    return cast(Wait, wait), cast(OnConflict, on_conflict)


def _table(given: Mapping[str, str]) -> str:
    """Return the table's name: the option, or the argument of `start` or `save`."""
    table = one_place(given)
    if not table:
        raise SettingsError(
            "option `table` is missing: name the table in"
            ' df.write.format("frazil").mode("append").save("db.flights") or'
            ' df.writeStream.format("frazil").start("db.flights"). `saveAsTable`, `insertInto`,'
            " `writeTo` and `toTable` write to a table of Spark's own catalog, whose options do not"
            " reach the writer. In SQL: CREATE TEMPORARY VIEW v (…) USING frazil OPTIONS (table"
            " 'db.flights') and INSERT INTO v, or INSERT INTO t WITH ('table'='db.flights')"
        )
    return table_name(table)
