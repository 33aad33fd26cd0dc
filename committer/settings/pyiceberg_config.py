"""Reads the catalogs that PyIceberg knows: `.pyiceberg.yaml` and the variables `PYICEBERG_…`.

The file is the first of those in `PYICEBERG_HOME`, the user's home and the working directory. The
names of catalogs and properties count in lower case; every value is a text; a variable wins over
the file. Frazil reads one catalog at a time, by a name that its own settings chose.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from committer.errors import SettingsError
from committer.extras import named_extra
from committer.settings.config_files import expanded, read_text
from committer.settings.setting_names import flattened

FILE = ".pyiceberg.yaml"
_PREFIX = "pyiceberg_"
_VARIABLES = "pyiceberg_catalog__"


def read_pyiceberg_catalogs(environment: Mapping[str, str | None]) -> dict[str, dict[str, str]]:
    """Return the properties of each catalog by its name.

    Errors: `SettingsError` naming the file that cannot be read, or is not of PyIceberg's form.
    """
    catalogs: dict[str, dict[str, str]] = {}
    for name, properties in _catalogs_of_file(environment):
        catalogs.setdefault(name, {}).update(properties)
    for variable, value in sorted(environment.items()):
        lowered = variable.lower()
        if not lowered.startswith(_VARIABLES) or not value:
            continue
        name, separator, key = lowered.removeprefix(_VARIABLES).partition("__")
        if separator:
            catalogs.setdefault(_dashed(name), {})[property_of_variable(key)] = value
    return catalogs


def is_pyicebergs(variable: str) -> bool:
    """Return whether an environment variable is one of PyIceberg's."""
    return variable.lower().startswith(_PREFIX)


def property_of_variable(text: str) -> str:
    """Return `s3.access-key-id` of `s3__access_key_id`: the end of a variable's name."""
    return _dashed(text.lower().replace("__", "."))


def _catalogs_of_file(
    environment: Mapping[str, str | None],
) -> Iterator[tuple[str, dict[str, str]]]:
    path = _file(environment)
    if path is None:
        return
    catalogs = _document(path).get("catalog") or {}
    if not isinstance(catalogs, Mapping):
        raise SettingsError(f"{path}: `catalog`: expected a mapping from names to properties")
    for name, properties in catalogs.items():
        if not isinstance(properties, Mapping):
            raise SettingsError(f"{path}: `catalog.{name}`: expected a mapping of properties")
        texts = {key.lower(): str(value) for key, value in flattened(properties) if value}
        yield str(name).lower(), texts


def _file(environment: Mapping[str, str | None]) -> Path | None:
    folders = (environment.get("PYICEBERG_HOME"), "~", ".")
    places = (expanded(folder) / FILE for folder in folders if folder)
    return next((place for place in places if place.is_file()), None)


def _document(path: Path) -> Mapping[str, object]:
    with named_extra(f"the file `{path}`", "service", "spark", "read"):
        import yaml
    try:
        # Every scalar stays a text, so that `no` and `1_000` mean what they say.
        document = yaml.load(read_text(path), Loader=yaml.BaseLoader)  # noqa: S506  # it makes only texts, lists and mappings
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise SettingsError(f"{path} cannot be read: {reason or error}") from None
    except yaml.YAMLError as error:
        raise SettingsError(f"{path} is not YAML: {' '.join(str(error).split())}") from None
    if document is None:
        return {}
    if not isinstance(document, Mapping):
        raise SettingsError(f"{path}: expected a mapping, such as `catalog:` with names below it")
    return {str(name).lower(): value for name, value in document.items()}


def _dashed(text: str) -> str:
    return text.replace("_", "-")
