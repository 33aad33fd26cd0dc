"""The settings that the Spark side reads. Names only: executors know them, and not a value."""

from __future__ import annotations

from collections.abc import Mapping

SETTING_NAMES = frozenset(
    {
        "home",
        "inbox",
        "catalog.name",
        "queue.url",
        "security.keys",
    }
)


_CATALOG = "catalog."


def is_setting(name: str) -> bool:
    """Return whether an option is a setting. Any property of the catalog is one here; the driver
    refuses those that there are not.
    """
    return name in SETTING_NAMES or name.startswith(_CATALOG)


def given_settings(
    plain: Mapping[str, str | None], properties: Mapping[str, str] | None
) -> dict[str, str]:
    """Return the settings of a call by name. `properties`: of the catalog, by their own names.

    None counts as not given.
    """
    given = {**plain, **{f"{_CATALOG}{name}": value for name, value in (properties or {}).items()}}
    return {name: value for name, value in given.items() if value is not None}
