"""Local files seen as objects: what a location means, which error is which, reading.

Blocking; `local` calls it from worker threads. Only regular files are opened, and no opening
blocks. Writing lives in `durable_writes`, listing in `walk`.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
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
from committer.place_threads import progressed
from committer.ports.skips import SkipKind
from committer.ports.storage import ObjectInfo, require_size

# --- Locations and errors ------------------------------------------------------------------------


def local_path(location: str) -> Path:
    """Return the path of a location, as `local_name`."""
    return Path(local_name(location))


def local_name(location: str) -> str:
    """Return the path of `/path`, `file:/path`, `file:///path` or `file://localhost/path`.

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
    """Translate errors of the system. A full disk is transient: space may come."""
    try:
        yield
    except OSError as error:
        make = _CLASSES.get(error.errno or 0, StorageUnavailableError)
        raise make(f"`{location}`: {error.strerror or error}") from error


@contextmanager
def looked_for(location: str) -> Iterator[None]:
    """Turn the error about a name that no file can have into that of an absent file."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise NotFoundError(f"`{location}`: {error.strerror}") from error
        raise


# --- Reading -------------------------------------------------------------------------------------


def read(
    location: str,
    offset: int,
    length: int | None,
    *,
    size_bytes_max: int | None = None,
    roots: Sequence[str] = (),
) -> bytes:
    """Read bytes of one file from one opening, so that a replacement under way does not mix in.

    No more than the file has when it is opened: it may be growing. `roots`: see `opened_folder`.
    """
    with explained(location), looked_for(location):
        descriptor, status = _open_regular(location, roots)
        try:
            require_size(location, status.st_size, size_bytes_max)
            left = max(0, status.st_size - offset)
            return _read(descriptor, offset, left if length is None else min(left, length))
        finally:
            os.close(descriptor)


def _read(descriptor: int, offset: int, wanted: int) -> bytes:
    """Read this number of bytes, or those up to the end: the system may return a part at a time."""
    content = os.pread(descriptor, wanted, offset)
    if len(content) in (0, wanted):
        return content
    parts = [content]
    while part := os.pread(
        descriptor, wanted - sum(map(len, parts)), offset + sum(map(len, parts))
    ):
        parts.append(part)
        progressed()
    return b"".join(parts)


def _open_regular(location: str, roots: Sequence[str]) -> tuple[int, os.stat_result]:
    """Open what is a regular file and nothing else. Checked first, because opening a device may
    have an effect; opened so that a FIFO does not block, and checked again.
    """
    path = local_name(location)
    with looked_up(path, roots) as (name, folder, follow):
        _require_regular(location, os.stat(name, dir_fd=folder, follow_symlinks=follow))
        flags = _READ if follow else _READ | os.O_NOFOLLOW
        descriptor = os.open(name, flags, dir_fd=folder)
    try:
        status = os.fstat(descriptor)
        _require_regular(location, status)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, status


def _require_regular(location: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = kind_of(status.st_mode)
        raise NotFoundError(
            f"`{location}` is not a file" + (f": it is {kind.text}" if kind else "")
        )


def kind_of(mode: int) -> SkipKind | None:
    """Return the kind of an entry that is neither a file nor a folder; None for these."""
    return _KINDS.get(stat.S_IFMT(mode))


_KINDS = {
    stat.S_IFLNK: SkipKind.LINK,
    stat.S_IFIFO: SkipKind.FIFO,
    stat.S_IFSOCK: SkipKind.SOCKET,
    stat.S_IFCHR: SkipKind.DEVICE,
    stat.S_IFBLK: SkipKind.DEVICE,
}


def describe(location: str, roots: Sequence[str] = ()) -> ObjectInfo:
    path = local_name(location)
    with explained(location), looked_for(location):
        with looked_up(path, roots) as (name, folder, follow):
            status = os.stat(name, dir_fd=folder, follow_symlinks=follow)
        _require_regular(location, status)
    return info_of(location, status)


def info_of(location: str, status: os.stat_result) -> ObjectInfo:
    return ObjectInfo(location, status.st_size, status.st_mtime_ns // 1_000_000, etag_of(status))


def etag_of(status: os.stat_result) -> str:
    """Return an etag without reading.
    Each write is a new file with a new time (`_stamp`), so it changes."""
    return f"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_size:x}"


# --- Folders that others can write to ------------------------------------------------------------


@contextmanager
def looked_up(path: str, roots: Sequence[str]) -> Iterator[tuple[str, int | None, bool]]:
    """Yield a system call's arguments for this path: a name, the folder that it is in, and whether
    a link of this name is followed. Strictly below a root no part of the path may be a link.
    """
    if root_of(path, roots) is None:
        yield path, None, True
        return
    folder, _, name = path.rpartition("/")
    descriptor = open_folder(folder, roots, PASS)
    try:
        yield name, descriptor, False
    finally:
        os.close(descriptor)


def root_of(path: str, roots: Sequence[str]) -> str | None:
    """Return the root that is strictly above a path."""
    return next(
        (root for root in roots if path.startswith(f"{root}/") and path != f"{root}/"), None
    )


def open_folder(path: str, roots: Sequence[str], flags: int | None = None) -> int:
    """Open a folder, by default for listing it. Below a root each part of the path is opened by
    itself, and a link (or `..`) is `ENOTDIR`; the root itself may be one.
    """
    flags = _LIST if flags is None else flags
    root = root_of(path, roots)
    if root is None:
        return os.open(path, flags)
    names = [name for name in path[len(root) :].split("/") if name]
    descriptor = os.open(root, PASS)
    for number, name in enumerate(names, 1):
        if name in (".", ".."):
            os.close(descriptor)
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        try:
            below = os.open(
                name,
                (flags if number == len(names) else PASS) | os.O_NOFOLLOW,
                dir_fd=descriptor,
            )
        finally:
            os.close(descriptor)
        descriptor = below
    return descriptor


# Opening must not block, nor become the process's terminal; the system adds O_CLOEXEC for Python.
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK
# Enough to look up what is in a folder, also without the right to list it.
PASS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY
