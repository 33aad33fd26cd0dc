"""Values of the options of a read or a write, by their names in lower case. Nothing is looked up.

Errors: `SettingsError` naming the option, and what it may be.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeVar

from committer.errors import SettingsError
from workers.settings.worker_setting_names import SETTING_NAMES, is_setting

_NUMBER_MAX = 2**63 - 1
_Default = TypeVar("_Default", int, None)


def refuse_unknown(
    given: Mapping[str, str], known: Collection[str], sparks: Collection[str]
) -> None:
    """Refuse an option that is not `known`, none of Spark's own (`sparks`), and no setting."""
    _refuse_catalog_table(given)
    unknown = sorted(
        name for name in given if name not in known and name not in sparks and not is_setting(name)
    )
    if unknown:
        raise SettingsError(
            f"unknown option `{'`, `'.join(unknown)}` of format `frazil`: expected"
            f" {', '.join(sorted({*known, *SETTING_NAMES}))} or a property of the catalog:"
            " `catalog.uri`, …"
        )


def _refuse_catalog_table(given: Mapping[str, str]) -> None:
    """Refuse `CREATE TABLE … USING frazil`: Spark asks for its schema with each option twice."""
    if any(name.startswith("option.") for name in given):
        raise SettingsError(
            "a table of Spark's own catalog cannot be `USING frazil`: Spark hands none of its"
            " options on when the table is read or written. Name Frazil's table in each call:"
            ' spark.read.format("frazil").load("db.flights"),'
            ' df.write.format("frazil").mode("append").save("db.flights"); in SQL: CREATE TEMPORARY'
            " VIEW v (…) USING frazil OPTIONS (table 'db.flights')"
        )


def one_place(given: Mapping[str, str]) -> str:
    """Return the option `table` or the path, which is the same; empty without both."""
    table, path = given.get("table", ""), given.get("path", "")
    if table and path and table != path:
        raise SettingsError(f"option `table` says `{table}`, but the path is `{path}`: give one")
    return table or path


def table_name(table: str) -> str:
    """Return a name with its namespace."""
    namespace, _, name = table.rpartition(".")
    if not namespace or not name or "/" in table:
        raise SettingsError(
            f"option `table`: expected a name such as `db.flights`, found `{table}`"
        )
    return table


def choice(given: Mapping[str, str], name: str, choices: tuple[str, str]) -> str:
    """Read a choice; the first one is the default."""
    value = given.get(name, choices[0]).lower()
    if value not in choices:
        raise SettingsError(
            f"option `{name}`: expected `{'` or `'.join(choices)}`, found `{value}`"
        )
    return value


def whole_number(given: Mapping[str, str], name: str) -> int | None:
    """Read a number from 0 on; None if it is not given."""
    text = given.get(name)
    if text is None:
        return None
    if not text.isdecimal() or int(text) > _NUMBER_MAX:
        raise SettingsError(f"option `{name}`: expected a whole number from 0 on, found `{text}`")
    return int(text)


def positive(given: Mapping[str, str], name: str, default: _Default) -> int | _Default:
    """Read a number from 1 on."""
    found = whole_number(given, name)
    if found == 0:
        raise SettingsError(f"option `{name}`: expected a whole number from 1 on, found `0`")
    return default if found is None else found


def seconds(given: Mapping[str, str], name: str, default_s: float) -> float:
    """Read a number of seconds."""
    text = given.get(name)
    try:
        found_s = default_s if text is None else float(text)
    except ValueError:
        found_s = -1.0
    if not 0 <= found_s < float("inf"):
        raise SettingsError(f"option `{name}`: expected a number of seconds, found `{text}`")
    return found_s


def flag(given: Mapping[str, str], name: str) -> bool:
    """Read `true` or `false`, the default."""
    return choice(given, name, ("false", "true")) == "true"
