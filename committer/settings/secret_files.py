"""Reads settings from files with one value, as Kubernetes and Compose provide secrets.

`FRAZIL_QUEUE__URL_FILE=/run/secrets/queue-url` stands for `FRAZIL_QUEUE__URL` with what the file
holds. Committer and Spark drivers share this; which settings there are is not known here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from committer.errors import SettingsError
from committer.settings.config_files import read_text

_PREFIX = "FRAZIL_"
_SUFFIX = "_FILE"
_BYTES_MAX = 64 * 1024


def read_secret_files(environment: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return the same variables, spelled as they are, with each `FRAZIL_…_FILE` replaced.

    One that is empty counts as absent, so that a layer of configuration can take it back. White
    space around a file's content is dropped. Errors: `SettingsError`, naming the variable and never
    a content, for a file that cannot be read or is empty (an empty value would count as absent, and
    a default take its place), and where both variables are set.
    """
    found = dict(environment)
    for variable, path in environment.items():
        if not _names_a_file(variable.upper()):
            continue
        del found[variable]
        if not path:
            continue
        setting = variable[: -len(_SUFFIX)]
        if environment.get(setting):
            raise SettingsError(
                f"{setting.upper()} and {variable.upper()} are both set: keep one of them"
            )
        found[setting] = _read(variable.upper(), Path(path))
    return found


def _names_a_file(variable: str) -> bool:
    return variable.startswith(_PREFIX) and variable.endswith(_SUFFIX)


def _read(variable: str, path: Path) -> str:
    try:
        content = read_text(path, bytes_max=_BYTES_MAX).strip()
    except (OSError, UnicodeDecodeError) as error:
        system = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SettingsError(f"{variable}: `{path}` cannot be read: {system or error}") from None
    if not content:
        raise SettingsError(f"{variable}: `{path}` is empty")
    return content
