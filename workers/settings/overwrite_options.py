"""The options of an overwrite, checked. Values only: nothing is looked up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

from committer.errors import SettingsError
from workers.settings.option_values import choice, whole_number

OverwriteMode = Literal["static", "dynamic"]
IsolationLevel = Literal["serializable", "snapshot"]

MODE, FILTER = "overwrite-mode", "overwrite-filter"
ISOLATION, BASE = "isolation-level", "validate-from-snapshot-id"
OVERWRITE_OPTIONS = frozenset({MODE, FILTER, ISOLATION, BASE})


@dataclass(frozen=True, slots=True)
class OverwriteOptions:
    """The rows that are replaced. `mode`: `static`: those of `filter` (a where text), or all;
    `dynamic`: those of the partitions that the new rows are in.

    `isolation_level`: what others must not have done since `base_snapshot_id`; without that, since
    the write began.
    """

    mode: OverwriteMode = "static"
    filter: str | None = None
    isolation_level: IsolationLevel | None = None
    base_snapshot_id: int | None = None


def overwrite_options(given: Mapping[str, str]) -> OverwriteOptions:
    """Read the options of a batch overwrite. Errors: `SettingsError` naming the option."""
    mode = cast(OverwriteMode, choice(given, MODE, ("static", "dynamic")))
    where = given.get(FILTER) or None
    if where is not None and mode == "dynamic":
        raise SettingsError(
            f"option `{FILTER}`: with `{MODE}` `dynamic` the rows say which partitions are replaced"
        )
    base = whole_number(given, BASE)
    if base is not None and ISOLATION not in given:
        raise SettingsError(
            f"option `{BASE}`: expected `{ISOLATION}` with it; without, nothing is validated"
        )
    return OverwriteOptions(mode, where, _isolation_level(given), base)


def refuse_overwrite_options(given: Mapping[str, str], instead: str) -> None:
    """Refuse options of an overwrite in a write that is none. Errors: `SettingsError`."""
    if unfit := sorted(OVERWRITE_OPTIONS.intersection(given)):
        raise SettingsError(f"option `{unfit[0]}`: {instead}")


def _isolation_level(given: Mapping[str, str]) -> IsolationLevel | None:
    if ISOLATION not in given:
        return None
    return cast(IsolationLevel, choice(given, ISOLATION, ("serializable", "snapshot")))
