"""Folders and files that only their owner may enter and read, whatever the umask says."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_OTHERS = 0o077
_OTHERS_WRITE = 0o022


def make_private_folder(folder: Path) -> None:
    """Make a folder of mode 0700. Those above it are made as the umask says; one that is there
    keeps its mode. Errors: `OSError`.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        folder.mkdir(0o700)
    folder.mkdir(exist_ok=True)  # raises where that is no folder


def is_private_folder(folder: Path) -> bool:
    """Return whether its owner alone may enter a folder; True of one that is not there, as
    `make_private_folder` makes it so. Errors: `OSError` where that cannot be seen.
    """
    return not _mode_of(folder) & _OTHERS


def is_written_by_others(folder: Path) -> bool:
    """Return whether others than its owner may add to a folder and replace what is in it.

    Errors: as `is_private_folder`.
    """
    return bool(_mode_of(folder) & _OTHERS_WRITE)


def _mode_of(folder: Path) -> int:
    try:
        return folder.stat().st_mode
    except FileNotFoundError:
        return 0


def make_private_file(path: Path) -> None:
    """Make an empty file of mode 0600, unless it is there. Errors: `OSError`."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def mode_below(folder: str, mode: int) -> int:
    """Return the mode of what is made in a folder: what is made in a private one is private, too.

    Errors: `FileNotFoundError` for a folder that is not there.
    """
    return mode if Path(folder).stat().st_mode & _OTHERS else mode & ~_OTHERS
