"""Reads the files of settings: the TOML file, and files with one value.

Committer and Spark drivers share this. A file that cannot be read is never taken for an absent one.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from tomllib import TOMLDecodeError, loads

from committer.errors import SettingsError
from committer.settings.setting_names import refuse_unknown_keys

_BYTES_MAX = 1 << 20


def expanded(path: str | Path) -> Path:
    """Expand `~`. Errors: `SettingsError` for a user who has no home folder."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise SettingsError(f"`{path}`: {error}; name a folder by FRAZIL_HOME") from None


def read_settings_file(named: str | None, home: Path) -> dict[str, object]:
    """Return the settings of the TOML file; none where no file is named and `home` has none.
    `named`: by `FRAZIL_CONFIG`.

    Errors: `SettingsError` naming the file, for all that is not a readable TOML file of settings.
    """
    path = expanded(named) if named else home / "frazil.toml"
    try:
        document = loads(read_text(path))
    except FileNotFoundError:
        if named:
            raise SettingsError(f"FRAZIL_CONFIG names `{named}`, which is not a file") from None
        return {}
    except PermissionError as error:
        remedy = "another file by FRAZIL_CONFIG" if named else "a home of yours by FRAZIL_HOME"
        raise SettingsError(f"{path} cannot be read: {error.strerror}; name {remedy}") from None
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} is not TOML: it is not UTF-8: {error.reason}") from None
    except TOMLDecodeError as error:
        raise SettingsError(f"{path} is not TOML: {error}") from None
    refuse_unknown_keys(document, path)
    return document


def read_text(path: Path, *, bytes_max: int = _BYTES_MAX) -> str:
    """Read a regular file's text. Opening never waits: a pipe without a writer would, for ever.

    Errors: `OSError`; `UnicodeDecodeError`.
    """
    with open(path, "rb", opener=_open_at_once) as file:
        mode = os.fstat(file.fileno()).st_mode
        if not stat.S_ISREG(mode):
            raise OSError(f"it is {_kind(mode)}, not a regular file")
        content = file.read(bytes_max + 1)
    if len(content) > bytes_max:
        raise OSError(f"it is larger than {bytes_max} bytes")
    return content.decode()


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)


def _kind(mode: int) -> str:
    return "a pipe" if stat.S_ISFIFO(mode) else "a device"
