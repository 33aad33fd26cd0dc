"""The options of a change, checked: table, branch, how long to wait. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

from committer.errors import SettingsError
from committer.settings.setting_names import refuse_unknown_options
from workers.settings.option_values import (
    flag,
    refuse_unknown,
    seconds,
    table_name,
    whole_number,
)
from workers.settings.wap import (
    NO_SESSION_WAP,
    NO_WAP_OPTIONS,
    WAP_OPTIONS,
    SessionWap,
    WapOptions,
    wap_options,
)
from workers.settings.worker_setting_names import SETTING_NAMES, is_setting

Command = Literal["delete", "update", "merge", "upsert"]
_OURS = frozenset({"branch", "retries", "wait_timeout_s", *WAP_OPTIONS})
# Iceberg and Delta have these names for it.
_EVOLVES_SCHEMA = ("mergeschema", "merge-schema", "union-by-name")
_WAIT_TIMEOUT_S = 300.0
_RETRIES_MAX = 100


@dataclass(frozen=True, slots=True)
class ChangeOptions:
    """`retries`: how often a change that conflicts is run again, on the table as it is then.
    `settings`: those that say where catalog, inbox and queue are. `branch`: None: main, or the one
    that the session says; `session`: its confs. `evolves_schema`: of a merge, the table gets the
    columns of the source that it lacks."""

    table: str
    settings: Mapping[str, str]
    branch: str | None = None
    retries: int = 0
    wait_timeout_s: float = _WAIT_TIMEOUT_S
    wap: WapOptions = NO_WAP_OPTIONS
    session: SessionWap = NO_SESSION_WAP
    evolves_schema: bool = False

    def in_session(self, spark: Any) -> Self:
        """Return the options of a change by a session."""
        return replace(self, session=SessionWap.of_session(spark))


def parse_change_options(
    table: str, options: Mapping[str, object], *, is_merge: bool = False
) -> ChangeOptions:
    """Check the options of a change; a merge has some of its own.

    Errors: `SettingsError` naming the option, also for a property of the catalog that there is not.
    """
    given = {name.lower(): str(value) for name, value in options.items()}
    of_merges = _EVOLVES_SCHEMA if is_merge else ()
    refuse_unknown(given, {*_OURS, *of_merges}, ())
    refuse_unknown_options(sorted(filter(is_setting, given.keys() - SETTING_NAMES)))
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
        evolves_schema=any(flag(given, name) for name in of_merges),
    )
