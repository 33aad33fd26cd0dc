"""The options of a write with `format("frazil")`, checked. Values only: nothing is looked up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

from committer.errors import SettingsError
from committer.iceberg.metadata.snapshot import MAIN
from workers.settings.create_options import (
    CREATE_OPTIONS,
    CreateOptions,
    create_options,
    is_table_property,
)
from workers.settings.option_values import (
    choice,
    flag,
    one_place,
    refuse_unknown,
    seconds,
    table_name,
    whole_number,
)
from workers.settings.worker_setting_names import is_setting

Wait = Literal["durable", "committed"]
OnQuarantine = Literal["fail", "continue"]

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
        "union-by-name",
        "merge-schema",
        "check-ordering",
        "check-nullability",
        *CREATE_OPTIONS,
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
    `create`: what to create if the table is not there; None: nothing.
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
    branch: str = MAIN
    union_by_name: bool = False
    check_ordering: bool = False
    check_nullability: bool = False
    create: CreateOptions | None = None


def parse_options(options: Mapping[str, str], *, streaming: bool) -> WriteOptions:
    """Parse the options of a write. Errors: `SettingsError` naming the option."""
    given = {name.lower(): value for name, value in options.items()}
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
    return WriteOptions(
        table=_table(given),
        settings={name: value for name, value in given.items() if value and is_setting(name)},
        sink=given.get("sink", ""),
        producer=producer,
        epoch=epoch,
        on_quarantine=cast(OnQuarantine, choice(given, "on_quarantine", ("fail", "continue"))),
        wait=cast(Wait, choice(given, "wait", ("durable", "committed"))),
        wait_timeout_s=seconds(given, "wait_timeout_s", _WAIT_TIMEOUT_S),
        backlog_max=BACKLOG_MAX if backlog_max is None else backlog_max,
        backlog_wait_s=seconds(given, "backlog_wait_s", BACKLOG_WAIT_S),
        checkpoint=given.get("checkpointlocation") or None,
        query_name=given.get("queryname") or None,
        branch=given.get("branch") or MAIN,
        union_by_name=any(flag(given, name) for name in _UNION),
        check_ordering=flag(given, "check-ordering"),
        check_nullability=flag(given, "check-nullability"),
        create=create_options(given),
    )


def _table(given: Mapping[str, str]) -> str:
    """Return the table's name: the option, or the argument of `start` or `save`."""
    table = one_place(given)
    if not table:
        raise SettingsError(
            'option `table` is missing: option("table", "db.flights"), or the table\'s name in'
            ' start("db.flights") or save("db.flights"). In SQL: CREATE TEMPORARY VIEW v (…) USING'
            " frazil OPTIONS (table 'db.flights') and INSERT INTO v, or INSERT INTO t WITH"
            " ('table'='db.flights'): the options of a catalog table do not reach the writer"
        )
    return table_name(table)
