"""The options of a write that say how its table is to be created. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from committer.errors import SettingsError
from workers.settings.option_values import flag

_CREATE = "create"
_LAYOUT = ("partition-by", "sort-by", "location")
CREATE_OPTIONS = frozenset({_CREATE, *_LAYOUT})
# `table-property.write.format.default`
_TABLE_PROPERTY = "table-property."


@dataclass(frozen=True, slots=True)
class CreateOptions:
    """The layout of a table that may have to be created. Texts as of `frazil table create`:
    `days(at), bucket(16, id)`, `at desc nulls last`. `format_version`: None for the properties'
    or 2."""

    partition_by: str = ""
    sort_by: str = ""
    location: str = ""
    properties: Mapping[str, str] = field(default_factory=dict)
    format_version: int | None = None


def is_table_property(name: str) -> bool:
    """Return whether an option is a property of a table that is created."""
    return name.startswith(_TABLE_PROPERTY)


def create_options(given: Mapping[str, str]) -> CreateOptions | None:
    """Return what to create; None: nothing. Errors: `SettingsError` naming an option that says how
    to create what is not to be created."""
    properties = [name for name in given if is_table_property(name)]
    if flag(given, _CREATE):
        partition_by, sort_by, location = (given.get(name, "") for name in _LAYOUT)
        named = {name.removeprefix(_TABLE_PROPERTY): given[name] for name in properties}
        return CreateOptions(partition_by, sort_by, location, named)
    useless = [*(name for name in _LAYOUT if name in given), *properties]
    if useless:
        raise SettingsError(
            f"option `{useless[0]}` is of a table that the write creates: it needs"
            ' option("create", "true"); an existing table keeps its own layout'
        )
    return None
