"""Where a Spark driver finds the catalog, the inbox and the queue.

Sources, strongest first: options of the write (or of `frazil_sink`, `configure`), the environment
(`FRAZIL_…`, or `FRAZIL_…_FILE` naming a file with the value), the TOML file named by
`FRAZIL_CONFIG` (default `<home>/frazil.toml`). Names are those of the committer's settings, so one
file serves both. Executors need none of this.

The defaults below `<home>` are the committer's too, but hold only where they exist: on another
machine than the committer's, a request put into a folder of this machine would never be found.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tomllib import TOMLDecodeError, loads
from urllib.parse import quote

from committer.errors import SettingsError
from committer.secret_files import read_secret_files

NO_QUEUE = "none"
_PRIVATE = "private"

_VARIABLES = {
    "home": "FRAZIL_HOME",
    "inbox": "FRAZIL_INBOX",
    "catalog.name": "FRAZIL_CATALOG__NAME",
    "catalog.uri": "FRAZIL_CATALOG__URI",
    "queue.url": "FRAZIL_QUEUE__URL",
}
SETTING_NAMES = frozenset(_VARIABLES)


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Everything that publishing needs to know. `queue_url` is a Redis URL or `none`."""

    catalog_name: str
    catalog_uri: str
    inbox: str
    queue_url: str


def variable_of(setting: str) -> str:
    """The environment variable of a setting."""
    return _VARIABLES[setting]


def load_settings(
    options: Mapping[str, str], environment: Mapping[str, str] | None = None
) -> WorkerSettings:
    """Resolve all sources; `options` may hold others than settings.

    Errors: `SettingsError` naming the option and the variable of what is missing or wrong.
    """
    found = _Sources(options, os.environ if environment is None else environment)
    queue = found.get("queue.url") or _PRIVATE
    if queue == _PRIVATE:
        queue = f"unix://{quote(str(found.home / 'queue' / 'redis.sock'))}"
    elif queue != NO_QUEUE and not queue.startswith(("redis://", "rediss://", "unix://")):
        raise SettingsError(
            f"{_place('queue.url')}: expected `none`, `private`, redis://…, rediss://… or unix://…"
        )
    return WorkerSettings(
        catalog_name=found.get("catalog.name") or "frazil",
        catalog_uri=found.get("catalog.uri") or _default_catalog(found.home),
        inbox=found.get("inbox") or _default_inbox(found.home),
        queue_url=queue,
    )


class _Sources:
    """The sources in their order. An empty value counts as absent."""

    def __init__(self, options: Mapping[str, str], environment: Mapping[str, str]) -> None:
        self._options = {name.lower(): value for name, value in options.items()}
        self._environment = read_secret_files(environment)
        self.home = Path(self._named("home") or "~/.frazil").expanduser().absolute()
        self._file = _read_file(environment.get("FRAZIL_CONFIG"), self.home)

    def get(self, setting: str) -> str | None:
        return self._named(setting) or self._in_file(setting)

    def _named(self, setting: str) -> str | None:
        return self._options.get(setting) or self._environment.get(_VARIABLES[setting])

    def _in_file(self, setting: str) -> str | None:
        *groups, name = setting.split(".")
        table: object = self._file
        for group in groups:
            table = table.get(group, {}) if isinstance(table, dict) else {}
        value = table.get(name) if isinstance(table, dict) else None
        if value is not None and not isinstance(value, str):
            raise SettingsError(f"`{setting}` in the configuration file: expected a string")
        return value


def _read_file(named: str | None, home: Path) -> dict[str, object]:
    path = Path(named).expanduser() if named else home / "frazil.toml"
    try:
        return loads(path.read_text())
    except FileNotFoundError:
        if named:
            raise SettingsError(f"FRAZIL_CONFIG names `{named}`, which is not a file") from None
        return {}
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from None
    except (TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not TOML: {error}") from None


def _default_catalog(home: Path) -> str:
    path = home / "catalog.db"
    if not path.is_file():
        raise _missing("catalog.uri", "the catalog's SQLAlchemy URL", f"`{path}`, does not exist")
    return f"sqlite:///{path}"


def _default_inbox(home: Path) -> str:
    if not home.is_dir():
        raise _missing("inbox", "the committer's inbox location", f"below `{home}`, is not there")
    return f"file://{home}/requests"


def _missing(setting: str, meaning: str, default: str) -> SettingsError:
    return SettingsError(
        f"{_place(setting)} is missing: {meaning}, the same as the committer's."
        f" Its default, {default}"
    )


def _place(setting: str) -> str:
    return f'setting `{setting}` (option("{setting}", …) or {_VARIABLES[setting]})'
