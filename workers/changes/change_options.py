"""The options of a change, checked: table, branch, how long to wait. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

from committer.errors import SettingsError
from workers.settings.option_values import refuse_unknown, seconds, table_name, whole_number
from workers.settings.wap import (
    NO_SESSION_WAP,
    NO_WAP_OPTIONS,
    WAP_OPTIONS,
    SessionWap,
    WapOptions,
    wap_options,
)
from workers.settings.worker_setting_names import is_setting

Command = Literal["delete", "update", "merge", "upsert"]
_OURS = frozenset({"branch", "retries", "wait_timeout_s", *WAP_OPTIONS})
_WAIT_TIMEOUT_S = 300.0
_RETRIES_MAX = 100


@dataclass(frozen=True, slots=True)
class ChangeOptions:
    """`retries`: how often a change that conflicts is run again, on the table as it is then.
    `settings`: those that say where catalog, inbox and queue are. `branch`: None: main, or the one
    that the session says; `session`: its confs."""

    table: str
    settings: Mapping[str, str]
    branch: str | None = None
    retries: int = 0
    wait_timeout_s: float = _WAIT_TIMEOUT_S
    wap: WapOptions = NO_WAP_OPTIONS
    session: SessionWap = NO_SESSION_WAP

    def in_session(self, spark: Any) -> Self:
        """Return the options of a change by a session."""
        session = SessionWap.of(lambda conf: spark.conf.get(conf, None))
        return replace(self, session=session)


def parse_change_options(table: str, options: Mapping[str, object]) -> ChangeOptions:
    """Check the options of a change. Errors: `SettingsError` naming the option."""
    given = {name.lower(): str(value) for name, value in options.items()}
    refuse_unknown(given, _OURS, ())
    retries = whole_number(given, "retries") or 0
    if retries > _RETRIES_MAX:
        raise SettingsError(f"option `retries`: expected {_RETRIES_MAX} at most, found {retries}")
    return ChangeOptions(
        table_name(table),
        {name: value for name, value in given.items() if value and is_setting(name)},
        given.get("branch") or None,
        retries,
        seconds(given, "wait_timeout_s", _WAIT_TIMEOUT_S),
        wap_options(given),
    )
