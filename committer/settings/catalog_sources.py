"""Finds the catalog that the settings name, in every source. For committer and Spark alike.

Strongest first: what a call names (an option, an argument), `FRAZIL_CATALOG__…`, the table
`[catalog]` of the TOML file, `PYICEBERG_CATALOG__<NAME>__…`, and PyIceberg's file. PyIceberg's
catalogs count only if Frazil's own settings name one of them: a committer on a workstation must not
commit to whatever catalog its user's file has as the default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from committer.catalog.catalog_properties import CatalogProperties
from committer.catalog.property_names import expected_form
from committer.errors import SettingsError
from committer.settings.pyiceberg_config import (
    is_pyicebergs,
    property_of_variable,
    read_pyiceberg_catalogs,
)
from committer.settings.setting_names import flattened, setting_text

DEFAULT_NAME = "frazil"
_VARIABLES = "FRAZIL_CATALOG__"
# Properties that say which catalog it is; the others may refine one of PyIceberg's.
_PLACES = frozenset({"type", "uri"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogSources:
    """The places, each with names of properties as they stand there.

    `named`: without `catalog.` before them. `document`: the whole TOML file. `asked_for`: the name
    that a command line gives by `option`, which has to be configured somewhere.
    """

    named: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str | None] = field(default_factory=dict)
    document: Mapping[str, object] = field(default_factory=dict)
    asked_for: str | None = None
    option: str = "--catalog"


def resolve_catalog(sources: CatalogSources) -> CatalogProperties:
    """Return the catalog's name and properties; `values` is without `uri` if no place has one.

    Errors: `SettingsError` naming the setting or the file that is wrong, and for a name that is
    asked for and configured nowhere.
    """
    layers = [dict(sources.named), _of_variables(sources.environment), _of_document(sources)]
    own = _merged(layers)
    configured = own.pop("name", "")
    name = sources.asked_for or configured
    if sources.asked_for and configured not in ("", sources.asked_for):
        raise SettingsError(
            f"{sources.option} {sources.asked_for}: the settings describe the catalog"
            f" `{configured}` ({setting_text('catalog.name')}); leave one of the two away"
        )
    _check_forms(own, "")
    described = configured or (DEFAULT_NAME if own.keys() & _PLACES else "")
    if sources.asked_for and described not in ("", sources.asked_for):
        own = {}  # of the catalog without a name, which is not the one that is asked for
    catalogs = read_pyiceberg_catalogs(sources.environment) if name else {}
    theirs = catalogs.get(name.lower(), {})
    if sources.asked_for and sources.asked_for != described and not theirs:
        raise _not_configured(sources)
    _check_forms(theirs, " in PyIceberg's configuration")
    return CatalogProperties(name or DEFAULT_NAME, _merged([own, theirs]))


def other_catalog(name: str, environment: Mapping[str, str | None]) -> CatalogProperties:
    """Return a catalog of PyIceberg's configuration beside the one that the settings name.

    Errors: `SettingsError` where there is none of this name, or a property has not its form.
    """
    theirs = {key: value for key, value in environment.items() if is_pyicebergs(key)}
    return resolve_catalog(CatalogSources(environment=theirs, asked_for=name, option="--to"))


def _merged(layers: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Merge what is not empty; the first layer is the strongest."""
    merged: dict[str, str] = {}
    for layer in layers:
        for name, value in layer.items():
            if value:
                merged.setdefault(name, value)
    return merged


def _of_variables(environment: Mapping[str, str | None]) -> dict[str, str]:
    return {
        property_of_variable(variable[len(_VARIABLES) :]): value
        for variable, value in environment.items()
        if variable.upper().startswith(_VARIABLES) and value
    }


def _of_document(sources: CatalogSources) -> dict[str, str]:
    group = sources.document.get("catalog", {})
    if not isinstance(group, Mapping):
        raise SettingsError("`catalog` in the configuration file: expected a table")
    return {name: _text(name, value) for name, value in flattened(group)}


def _text(name: str, value: object) -> str:
    match value:
        case str():
            return value
        case bool():
            return str(value).lower()
        case int():
            return str(value)
    raise SettingsError(f"`catalog.{name}` in the configuration file: expected a string")


def _check_forms(properties: Mapping[str, str], where: str) -> None:
    for name, value in properties.items():
        if form := expected_form(name, value):
            raise SettingsError(f"{setting_text(f'catalog.{name}')}{where}: expected {form}")


def _not_configured(sources: CatalogSources) -> SettingsError:
    known = ", ".join(f"`{name}`" for name in sorted(read_pyiceberg_catalogs(sources.environment)))
    return SettingsError(
        f"{sources.option} {sources.asked_for}: no catalog of this name is configured, neither in"
        " Frazil's settings (`catalog.name`, `catalog.uri`) nor in PyIceberg's"
        + (f", which have {known}" if known else "")
    )
