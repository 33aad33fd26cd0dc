"""Blocking writes and deletions of local files that make the promises of the port `Storage` true.

Nothing here knows asyncio; `local` calls it from worker threads. What rests on what:

* Nobody sees half an object: content is written to a temporary file in the same folder, synced, and
  only then linked (create) or renamed (replace) to its name. A crash may leave a `.frazil-*.tmp`
  behind, which is never listed.
* Create-only is `link(2)`, which fails where the name exists. A file system without hard links is
  refused.
* Replacing, deleting and removing empty folders hold an exclusive `flock(2)` on the *folder* of the
  object, so they exclude one another in all processes of a machine, and no lock files pile up. On a
  network file system that is only as good as its `flock`.
* Durable means: file synced before it gets its name, folder synced before the call returns, also
  where it returns "exists already", because the caller may then count on the object. A deletion is
  not synced: after a power cut a deleted object may be back.
"""

from __future__ import annotations

import errno
import fcntl
import itertools
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from committer.errors import (
    AlreadyExistsError,
    FrazilError,
    NotFoundError,
    SettingsError,
    StorageUnavailableError,
)
from committer.ports import NewObject
from committer.storage.files import (
    TEMPORARY_PREFIX,
    TEMPORARY_SUFFIX,
    etag_of,
    explained,
    local_path,
)

_STAGED_MAX = 64
_ATTEMPTS_MAX = 5_000
_LOCK_POLL_S = 0.002
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class _Staged:
    """A temporary file that holds an object's content, to be given its name."""

    location: str
    path: Path
    temporary: Path
    etag: str


def create(objects: Sequence[NewObject]) -> list[str]:
    """Create all and return their etags.

    All of a group are written before the first is synced: one commit of the file system's journal
    then serves most of them. Groups are bounded so that temporary files do not pile up.
    """
    etags: list[str] = []
    for start in range(0, len(objects), _STAGED_MAX):
        with _staging() as staged:
            for created in objects[start : start + _STAGED_MAX]:
                staged.append(_stage(created.location, created.content))
            for item in staged:
                _sync(item.location, item.temporary)
            for item in staged:
                _link(item)
        etags.extend(item.etag for item in staged)
    return etags


def replace(location: str, content: bytes, etag: str) -> str:
    """Write the object if it still has the etag."""
    path = local_path(location)
    with _folder_lock(location, path.parent) as locked, _staging() as staged:
        before = _current(location, path) if locked else None
        if before is None or etag_of(before) != etag:
            raise AlreadyExistsError(f"`{location}` is no longer `{etag}`")
        item = _stage(location, content, after_ns=before.st_mtime_ns)
        staged.append(item)
        _sync(location, item.temporary)
        with explained(location):
            item.temporary.replace(path)
        return item.etag


def _current(location: str, path: Path) -> os.stat_result | None:
    try:
        with explained(location):
            return path.stat()
    except NotFoundError:
        return None


@contextmanager
def _staging() -> Iterator[list[_Staged]]:
    """Collects staged files; at the end, well or not, they are gone and their folders synced."""
    staged: list[_Staged] = []
    try:
        yield staged
    finally:
        for item in staged:
            item.temporary.unlink(missing_ok=True)
        for folder, item in {item.path.parent: item for item in staged}.items():
            with suppress(NotFoundError):  # another process has emptied and removed it
                _sync(item.location, folder)


def _stage(location: str, content: bytes, *, after_ns: int = 0) -> _Staged:
    path = local_path(location)
    with explained(location):
        try:
            descriptor, temporary = _open_temporary(location, path.parent)
        except NotADirectoryError as error:
            raise SettingsError(f"`{location}`: something above it is not a folder") from error
        try:
            with open(descriptor, "wb") as file:  # noqa: PTH123 (a descriptor has no path)
                file.write(content)
                file.flush()
                etag = _stamp(descriptor, after_ns)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
    return _Staged(location, path, temporary, etag)


def _stamp(descriptor: int, after_ns: int) -> str:
    """Give the file a modification time of its own, later than `after_ns`, and return its etag.

    The system's own times advance in ticks of milliseconds, and inode numbers are used again at
    once, so two contents of one name could look alike.
    """
    modified_ns = os.fstat(descriptor).st_mtime_ns
    modified_ns = max(modified_ns, after_ns + 1) + next(_numbers) % 1_000_000
    os.utime(descriptor, ns=(modified_ns, modified_ns))
    return etag_of(os.fstat(descriptor))


def _open_temporary(location: str, folder: Path) -> tuple[int, Path]:
    """Open a new file in the folder; make the folder as often as another process removes it."""
    for _ in range(_ATTEMPTS_MAX):
        temporary = folder / f"{TEMPORARY_PREFIX}{os.getpid()}-{next(_numbers)}{TEMPORARY_SUFFIX}"
        try:
            return os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), temporary
        except FileExistsError:
            continue
        except FileNotFoundError:
            _make_folder(location, folder)
    raise StorageUnavailableError(f"`{location}`: the folder `{folder}` vanishes again and again")


def _make_folder(location: str, folder: Path) -> None:
    """Make a folder and its parents, each durable in its parent before anything is put into it."""
    try:
        folder.mkdir()
    except FileExistsError:
        return
    except FileNotFoundError:
        _make_folder(location, folder.parent)
        with suppress(FileExistsError, FileNotFoundError):
            folder.mkdir()
    with suppress(NotFoundError):
        _sync(location, folder.parent)


def _link(item: _Staged) -> None:
    try:
        item.path.hardlink_to(item.temporary)
    except FileExistsError as error:
        raise AlreadyExistsError(f"`{item.location}` exists") from error
    except OSError as error:
        if error.errno in (errno.EPERM, errno.ENOTSUP, errno.EMLINK):
            raise SettingsError(
                f"`{item.location}`: the file system cannot link files, so nothing can be created"
                " only if absent; use another file system or an object store"
            ) from error
        with explained(item.location):
            raise


def _sync(location: str, path: Path) -> None:
    with explained(location):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


# --- Deleting ------------------------------------------------------------------------------------


def delete(locations: Iterable[str], prune_below: Sequence[Path]) -> None:
    """Delete files, then folders that this left empty, upwards but never one of `prune_below`."""
    folders: dict[Path, list[tuple[str, Path]]] = {}
    for location in locations:
        path = local_path(location)
        folders.setdefault(path.parent, []).append((location, path))
    for folder, files in folders.items():
        with _folder_lock(files[0][0], folder):
            for location, path in files:
                _unlink(location, path)
        _prune(folder, prune_below)


def _unlink(location: str, path: Path) -> None:
    if not path.is_dir():
        with suppress(NotFoundError), explained(location):
            path.unlink()


def _prune(folder: Path, roots: Sequence[Path]) -> None:
    """Under the folder's lock: whoever waits for the lock then sees that its folder is gone."""
    while any(root in folder.parents for root in roots):
        try:
            with _folder_lock(str(folder), folder) as locked:
                if locked:
                    folder.rmdir()
        except (OSError, FrazilError):
            return  # not empty, or not ours to remove: an empty folder does no harm
        folder = folder.parent


@contextmanager
def _folder_lock(location: str, folder: Path) -> Iterator[bool]:
    """Hold the folder's lock among all processes; False where there is no folder to lock."""
    descriptor = _lock_folder(location, folder)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _lock_folder(location: str, folder: Path) -> int | None:
    """Polls: a worker thread must not hang for ever on a process that was stopped."""
    for _ in range(_ATTEMPTS_MAX):
        try:
            with explained(location):
                descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except NotFoundError:
            return None
        with explained(location):
            if _try_lock(descriptor, folder):
                return descriptor
        time.sleep(_LOCK_POLL_S)
    raise StorageUnavailableError(f"`{location}`: another process holds the lock of `{folder}`")


def _try_lock(descriptor: int, folder: Path) -> bool:
    """True if locked, and the locked folder is still the one of that name; else closed."""
    locked = False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        locked = os.path.samestat(os.fstat(descriptor), folder.stat())
    except (BlockingIOError, FileNotFoundError):
        return False
    finally:
        if not locked:
            os.close(descriptor)
    return locked
