"""The sources of settings outside the committer, and the catalog that they name.

Strongest first: options, the environment (`FRAZIL_…`, or `FRAZIL_…_FILE` naming a file with the
value), the TOML file named by `FRAZIL_CONFIG` (default `<home>/frazil.toml`). Names are those of
the committer's settings, so one file serves both. Nothing is created here, not even the home.
"""

from __future__ import annotations

from collections.abc import Mapping

from committer.catalog.catalog_properties import CatalogProperties
from committer.errors import SettingsError
from committer.settings import default_places
from committer.settings.catalog_sources import CatalogSources, resolve_catalog
from committer.settings.config_files import expanded, read_settings_file
from committer.settings.secret_files import read_secret_files
from committer.settings.setting_names import (
    refuse_unknown_options,
    refuse_unknown_variables,
    variable_of,
)

_CATALOG = "catalog."


class SettingSources:
    """The sources in their order. An empty value counts as absent.

    Errors: `SettingsError` naming a variable or a file that is wrong or unknown.
    """

    def __init__(self, options: Mapping[str, str], environment: Mapping[str, str]) -> None:
        self._options = {name.lower(): value for name, value in options.items()}
        refuse_unknown_options(name for name in self._options if name.startswith(_CATALOG))
        refuse_unknown_variables(environment)
        self.environment = _in_one_spelling(read_secret_files(environment))
        beside = expanded(self._named("home") or default_places.HOME).absolute()
        self._file = read_settings_file(environment.get("FRAZIL_CONFIG") or None, beside)
        self.home = expanded(self.get("home") or beside).absolute()

    @property
    def catalog(self) -> CatalogProperties:
        """The catalog; without `uri` where no source has one. Errors: as `resolve_catalog`."""
        named = {
            name.removeprefix(_CATALOG): value
            for name, value in self._options.items()
            if name.startswith(_CATALOG)
        }
        return resolve_catalog(
            CatalogSources(named=named, environment=self.environment, document=self._file)
        )

    def get(self, setting: str) -> str | None:
        return self._named(setting) or self._in_file(setting)

    def _named(self, setting: str) -> str | None:
        return self._options.get(setting) or self.environment.get(variable_of(setting))

    def _in_file(self, setting: str) -> str | None:
        *groups, name = setting.split(".")
        table: object = self._file
        for group in groups:
            table = table.get(group, {}) if isinstance(table, dict) else {}
        value = table.get(name) if isinstance(table, dict) else None
        if value is not None and not isinstance(value, str):
            raise SettingsError(f"`{setting}` in the configuration file: expected a string")
        return value


def _in_one_spelling(environment: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return Frazil's variables in capitals: the committer reads them in any case."""
    return {
        name.upper() if name.upper().startswith("FRAZIL_") else name: value
        for name, value in environment.items()
    }
