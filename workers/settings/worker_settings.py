"""Settings of a Spark driver: the catalog, the inbox and the queue.

Sources, strongest first: options of the write (or of `sink`, `configure`), the environment
(`FRAZIL_…`, or `FRAZIL_…_FILE` naming a file with the value), the TOML file named by
`FRAZIL_CONFIG` (default `<home>/frazil.toml`). Names are those of the committer's settings, so one
file serves both. Executors need none of this.

The defaults below `<home>` are the committer's too, but apply only if they exist: on another
machine, no committer would find a request in a local folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from committer.catalog.catalog_properties import CatalogProperties
from committer.errors import SettingsError
from committer.settings import default_places
from committer.settings.setting_names import setting_text
from workers.files.store_access import USUAL_ACCESS, StoreAccess
from workers.settings.driver_access import access_of_driver
from workers.settings.setting_sources import SettingSources

NO_QUEUE = "none"
_PRIVATE = "private"


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Everything that publishing needs to know. `queue_url` is a Redis URL or `none`; `keys` is
    the location of the file of signing keys; `access` is for the tasks; `place` is the folder of
    new tables, empty where the catalog knows. `locations`: the setting
    `security.locations`, which no option of a write names.
    """

    catalog: CatalogProperties
    inbox: str
    queue_url: str
    keys: str | None = None
    access: StoreAccess = USUAL_ACCESS
    place: str = ""
    locations: str = ""


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """Everything that reading needs to know: the catalog, and for the tasks `access`."""

    catalog: CatalogProperties
    access: StoreAccess = USUAL_ACCESS


def load_read_settings(
    options: Mapping[str, str], environment: Mapping[str, str] | None = None
) -> ReadSettings:
    """Resolve the sources of a read, as `load_settings`: without inbox and queue."""
    return _read_settings(_sources(options, environment))


def load_settings(
    options: Mapping[str, str], environment: Mapping[str, str] | None = None
) -> WorkerSettings:
    """Resolve all sources; `options` may hold others than settings.

    Errors: `SettingsError` naming the option and the variable of what is missing or wrong.
    """
    found = _sources(options, environment)
    queue = found.get("queue.url") or _PRIVATE
    if queue == _PRIVATE:
        queue = default_places.socket_url(default_places.queue_folder(found.home))
    elif queue != NO_QUEUE and not queue.startswith(("redis://", "rediss://", "unix://")):
        raise SettingsError(
            f"{setting_text('queue.url', is_option=True)}: expected `none`, `private`, redis://…,"
            " rediss://… or unix://…"
        )
    read = _read_settings(found)
    return WorkerSettings(
        catalog=read.catalog,
        inbox=found.get("inbox") or _default_inbox(found.home),
        queue_url=queue,
        keys=found.get("security.keys"),
        access=read.access,
        place=_place(read.catalog, found.home),
        locations=found.get("security.locations") or "",
    )


def _sources(options: Mapping[str, str], environment: Mapping[str, str] | None) -> SettingSources:
    return SettingSources(options, os.environ if environment is None else environment)


def _read_settings(found: SettingSources) -> ReadSettings:
    catalog = _with_defaults(found.catalog, found.home)
    return ReadSettings(catalog, access_of_driver(catalog, found.environment))


def _with_defaults(properties: CatalogProperties, home: Path) -> CatalogProperties:
    if properties.get("uri", "type"):
        return properties.with_folder(default_places.warehouse(home))
    path = default_places.catalog_file(home)
    if not path.is_file():
        raise _missing("catalog.uri", "the catalog's SQLAlchemy URL", f"`{path}`, does not exist")
    return properties.with_uri(default_places.catalog_uri(home))


def _place(properties: CatalogProperties, home: Path) -> str:
    if properties.place or properties.has_own_places or not home.is_dir():
        return properties.place
    return default_places.warehouse(home)


def _default_inbox(home: Path) -> str:
    if not home.is_dir():
        raise _missing("inbox", "the committer's inbox location", f"below `{home}`, is not there")
    return default_places.inbox(home)


def _missing(setting: str, meaning: str, default: str) -> SettingsError:
    return SettingsError(
        f"{setting_text(setting, is_option=True)} is missing: {meaning}, the same as the"
        f" committer's. Its default, {default}"
    )
