"""The options of a write with `format("frazil")`, checked. Values only: nothing is looked up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

from committer.errors import SettingsError
from workers.settings.worker_setting_names import SETTING_NAMES, is_setting

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
    }
)
# Options that Spark itself adds or consumes.
_SPARKS = frozenset({"path", "checkpointlocation", "queryname", "provider", "owner"})
_NUMBER_MAX = 2**63 - 1
_WAIT_TIMEOUT_S = 300.0
BACKLOG_MAX = 10_000
BACKLOG_WAIT_S = 60.0


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The checked options. `settings` are those that say where catalog, inbox and queue are."""

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


def parse_options(options: Mapping[str, str], *, streaming: bool) -> WriteOptions:
    """Parse the options of a write. Errors: `SettingsError` naming the option."""
    given = {name.lower(): value for name, value in options.items()}
    _refuse_unknown(given)
    producer, epoch = given.get("producer") or None, _number(given, "epoch")
    backlog_max = _number(given, "backlog_max")
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
        on_quarantine=cast(OnQuarantine, _choice(given, "on_quarantine", ("fail", "continue"))),
        wait=cast(Wait, _choice(given, "wait", ("durable", "committed"))),
        wait_timeout_s=_seconds(given, "wait_timeout_s", _WAIT_TIMEOUT_S),
        backlog_max=BACKLOG_MAX if backlog_max is None else backlog_max,
        backlog_wait_s=_seconds(given, "backlog_wait_s", BACKLOG_WAIT_S),
        checkpoint=given.get("checkpointlocation") or None,
        query_name=given.get("queryname") or None,
    )


def _refuse_unknown(given: Mapping[str, str]) -> None:
    known = _OURS | _SPARKS
    unknown = sorted(name for name in given if name not in known and not is_setting(name))
    if unknown:
        raise SettingsError(
            f"unknown option `{'`, `'.join(unknown)}` of format `frazil`: expected"
            f" {', '.join(sorted(_OURS | SETTING_NAMES))} or a property of the catalog:"
            " `catalog.uri`, …"
        )


def _table(given: Mapping[str, str]) -> str:
    """Return the table's name: the option, or the argument of `start` or `save`."""
    table, path = given.get("table", ""), given.get("path", "")
    if table and path and table != path:
        raise SettingsError(f"option `table` says `{table}`, but the path is `{path}`: give one")
    table = table or path
    if not table:
        raise SettingsError(
            'option `table` is missing: option("table", "db.flights"), or the table\'s name in'
            ' start("db.flights") or save("db.flights"). In SQL: CREATE TEMPORARY VIEW v (…) USING'
            " frazil OPTIONS (table 'db.flights') and INSERT INTO v, or INSERT INTO t WITH"
            " ('table'='db.flights'): the options of a catalog table do not reach the writer"
        )
    namespace, _, name = table.rpartition(".")
    if not namespace or not name or "/" in table:
        raise SettingsError(
            f"option `table`: expected a name such as `db.flights`, found `{table}`"
        )
    return table


def _choice(given: Mapping[str, str], name: str, choices: tuple[str, str]) -> str:
    """Read a choice; the first one is the default."""
    value = given.get(name, choices[0]).lower()
    if value not in choices:
        raise SettingsError(
            f"option `{name}`: expected `{'` or `'.join(choices)}`, found `{value}`"
        )
    return value


def _number(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    if not text.isdecimal() or int(text) > _NUMBER_MAX:
        raise SettingsError(f"option `{name}`: expected a whole number from 0 on, found `{text}`")
    return int(text)


def _seconds(given: Mapping[str, str], name: str, default_s: float) -> float:
    text = given.get(name)
    try:
        seconds = default_s if text is None else float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise SettingsError(f"option `{name}`: expected a number of seconds, found `{text}`")
    return seconds
