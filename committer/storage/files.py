"""Local files seen as objects: what a location means, which error is which, reading and listing.

Blocking; `local` calls it from worker threads. Writing lives in `file_writes`.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from committer.errors import (
    AccessError,
    AlreadyExistsError,
    FrazilError,
    NotFoundError,
    SettingsError,
    StorageUnavailableError,
)
from committer.ports import ObjectInfo

TEMPORARY_PREFIX = ".frazil-"
TEMPORARY_SUFFIX = ".tmp"


# --- Locations and errors ------------------------------------------------------------------------


def local_path(location: str) -> Path:
    """As `local_name`."""
    return Path(local_name(location))


def local_name(location: str) -> str:
    """The path of `/path`, `file:/path`, `file:///path` or `file://localhost/path`.

    Percent signs stand for themselves, as in Hadoop's `Path` and PyIceberg: the partition folder
    `day=a%2Fb` has exactly that name on disk. Errors: `SettingsError` for anything else.
    """
    path = location
    if location[:5].lower() == "file:":
        path = location[5:]
        if path.startswith("//"):
            authority, slash, rest = path[2:].partition("/")
            path = slash + rest if authority in ("", "localhost") else ""
    if not path.startswith("/") or "\0" in path or not _is_encodable(path):
        raise SettingsError(
            f"location {location!r}: expected `/path` or `file:/path` on this machine"
        )
    return path


def _is_encodable(path: str) -> bool:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True


_CLASSES: dict[int, Callable[[str], FrazilError]] = {
    errno.ENOENT: NotFoundError,
    errno.ENOTDIR: NotFoundError,
    errno.EISDIR: NotFoundError,
    errno.EEXIST: AlreadyExistsError,
    errno.EACCES: AccessError,
    errno.EPERM: AccessError,
    errno.EROFS: AccessError,
    errno.ENAMETOOLONG: SettingsError,
    errno.ELOOP: SettingsError,
    errno.EINVAL: SettingsError,
    errno.ENOTSUP: SettingsError,
}


@contextmanager
def explained(location: str) -> Iterator[None]:
    """Turn errors of the system into ours. A full disk is transient: space may come."""
    try:
        yield
    except OSError as error:
        make = _CLASSES.get(error.errno or 0, StorageUnavailableError)
        raise make(f"`{location}`: {error.strerror or error}") from error


@contextmanager
def _looking_for(location: str) -> Iterator[None]:
    """A name that no file can have is that of none."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise NotFoundError(f"`{location}`: {error.strerror}") from error
        raise


# --- Reading -------------------------------------------------------------------------------------


def read(location: str, offset: int, length: int | None) -> bytes:
    """Bytes of one file from one opening, so that a replacement under way does not mix in."""
    with explained(location), _looking_for(location), local_path(location).open("rb") as file:
        file.seek(offset)
        return file.read(length)


def describe(location: str) -> ObjectInfo:
    with explained(location), _looking_for(location):
        status = local_path(location).stat()
    if not stat.S_ISREG(status.st_mode):
        raise NotFoundError(f"`{location}` is not a file")
    return _info(location, status)


def walk(prefix: str) -> Iterator[ObjectInfo]:
    """Objects below a folder in ascending order of location. Linked folders are not entered."""
    base = prefix if prefix.endswith("/") else f"{prefix}/"
    yield from _walk(local_path(prefix), base)


def _walk(folder: Path, base: str) -> Iterator[ObjectInfo]:
    for key, entry in _entries(folder, base):
        if key.endswith("/"):
            yield from _walk(Path(entry.path), base + key)
        elif status := _status(entry, base + key):
            yield _info(base + key, status)


def _entries(folder: Path, base: str) -> list[tuple[str, os.DirEntry[str]]]:
    """A folder's entries; folders carry a slash, so that `a.b` sorts before what is below `a`."""
    try:
        with explained(base), os.scandir(folder) as entries:
            keyed = [
                (entry.name + "/" if entry.is_dir(follow_symlinks=False) else entry.name, entry)
                for entry in entries
                if not _is_temporary(entry.name)
            ]
    except NotFoundError:
        return []
    return sorted(keyed, key=lambda pair: pair[0])


def _status(entry: os.DirEntry[str], location: str) -> os.stat_result | None:
    """None for what was deleted meanwhile, or is no file."""
    try:
        with explained(location):
            status = entry.stat()
    except NotFoundError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def _info(location: str, status: os.stat_result) -> ObjectInfo:
    return ObjectInfo(location, status.st_size, status.st_mtime_ns // 1_000_000, etag_of(status))


def etag_of(status: os.stat_result) -> str:
    """Known without reading. Each write is a new file with a new time (`_stamp`), so it changes."""
    return f"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_size:x}"


def _is_temporary(name: str) -> bool:
    return name.startswith(TEMPORARY_PREFIX) and name.endswith(TEMPORARY_SUFFIX)
