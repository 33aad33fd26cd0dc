"""Blocking writes and deletions of local files that make the promises of the port `Storage` true.

Nothing here knows asyncio; `local` calls it from worker threads. How each promise is kept:

* No reader sees half an object: content is written to a temporary file in the same folder, synced,
  and only then linked (create) or renamed (replace) to its name. A crash may leave a
  `.frazil-*.tmp` behind, which is never listed, and removed after a day (`temporaries`).
* Create-only is `link(2)`, which fails where the name exists. A file system without hard links is
  refused.
* Replacing and deleting hold an exclusive `flock(2)` on the *folder* of the object, so they exclude
  one another in all processes of a machine, and no lock files pile up. On a network file system
  that is only as good as its `flock`. Deleting takes none where objects are never replaced (below
  the folders of `EmptyFolders`). A writer that needs a folder that was removed because it was empty
  makes it again.
* Durable means: file synced before it gets its name; its folder, and those above it that were made
  for it, synced before the call returns. Also where it returns "exists already", because the caller
  may then count on the object. A deletion is not synced: after a power cut a deleted object may be
  back.
* Files and folders below a root, in a private folder (mode 0700), are private under any umask.
"""

from __future__ import annotations

import errno
import fcntl
import itertools
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass

from committer.errors import (
    AlreadyExistsError,
    FrazilError,
    NotFoundError,
    SettingsError,
    StorageUnavailableError,
)
from committer.place_threads import progressed
from committer.ports.storage import NewObject
from committer.private_files import mode_below
from committer.storage.disk.empty_folders import EmptyFolders
from committer.storage.disk.local_files import (
    PASS,
    etag_of,
    explained,
    local_name,
    looked_up,
    open_folder,
    root_of,
)
from committer.storage.disk.temporaries import TEMPORARY_PREFIX, TEMPORARY_SUFFIX

_STAGED_MAX = 64
_ATTEMPTS_MAX = 5_000
_LOCK_POLL_S = 0.002
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class _Staged:
    """A temporary file that holds an object's content, to be given its name. `descriptor` is open
    until it is synced. `folders`: what has to be synced then, its own first. Paths are texts here:
    this is what publishing costs a producer."""

    location: str
    path: str
    temporary: str
    descriptor: int
    folders: list[str]


def create_groups(
    groups: Sequence[Sequence[NewObject]], roots: Sequence[str] = ()
) -> list[Exception | None]:
    """Create all objects of all groups. The first error in each group, if any.

    `roots`: below these nothing is created behind a link.

    Many are written before the first is synced: one commit of the file system's journal then serves
    most of them. How many is bounded, so that temporary files do not pile up.
    """
    errors: list[Exception | None] = [None] * len(groups)
    objects = [(number, created) for number, group in enumerate(groups) for created in group]
    for start in range(0, len(objects), _STAGED_MAX):
        _create_some(objects[start : start + _STAGED_MAX], errors, roots)
    return errors


def _create_some(
    objects: Sequence[tuple[int, NewObject]],
    errors: list[Exception | None],
    roots: Sequence[str],
) -> None:
    """Create some files: one with an error stops; the others continue."""
    staged: list[tuple[int, _Staged]] = []
    for number, created in objects:
        with _noting(number, errors) as goes_on:
            if goes_on:
                staged.append((number, _stage(created.location, created.content, roots)))
                progressed()
    for number, item in staged:
        with _noting(number, errors) as goes_on, explained(item.location):
            if goes_on:
                os.fsync(item.descriptor)
                progressed()
    for number, item in staged:
        with _noting(number, errors) as goes_on:
            if goes_on:
                _link(item)
    for _, item in staged:
        _drop_temporary(item)
    synced: set[str] = set()
    for number, item in staged:
        # Also behind an error: what exists already is durable before its caller hears of it.
        with _noting(number, errors):
            _sync_folders(item, synced)


@contextmanager
def _noting(number: int, errors: list[Exception | None]) -> Iterator[bool]:
    """Keep a group's first error. Gives whether it has had none yet."""
    try:
        yield errors[number] is None
    except Exception as error:  # noqa: BLE001  # handed to the caller of this group
        errors[number] = errors[number] or error


def create_with_etag(location: str, content: bytes, roots: Sequence[str] = ()) -> str:
    """Create one object and return its etag."""
    item = _stage(location, content, roots)
    try:
        with explained(location):
            os.fsync(item.descriptor)
            etag = etag_of(os.fstat(item.descriptor))
        _link(item)
    finally:
        _drop_temporary(item)
        _sync_folders(item, set())
    return etag


def replace(location: str, content: bytes, etag: str, roots: Sequence[str] = ()) -> str:
    """Write the object if it still has the etag; return the new one."""
    path = local_name(location)
    with _folder_lock(location, os.path.dirname(path)) as locked:
        before = _current(location, path) if locked else None
        if before is None or etag_of(before) != etag:
            raise AlreadyExistsError(f"`{location}` is no longer `{etag}`")
        item = _stage(location, content, roots, after_ns=before.st_mtime_ns)
        try:
            with explained(location):
                os.fsync(item.descriptor)
                new_etag = etag_of(os.fstat(item.descriptor))
                os.replace(item.temporary, path)
        finally:
            _drop_temporary(item)
        _sync_folders(item, set())
        return new_etag


def _current(location: str, path: str) -> os.stat_result | None:
    try:
        with explained(location):
            return os.stat(path)
    except NotFoundError:
        return None


def _drop_temporary(item: _Staged) -> None:
    os.close(item.descriptor)
    with suppress(OSError):
        os.unlink(item.temporary)


def _above(folder: str) -> tuple[str, str]:
    parent = os.path.dirname(folder)
    return parent, os.path.dirname(parent)


def _sync_folders(item: _Staged, synced: set[str]) -> None:
    """Sync those that are not yet: one commit of the journal serves most of them."""
    for folder in item.folders:
        if folder not in synced:
            _sync_folder(item.location, folder)
            progressed()
            synced.add(folder)


def _sync_folder(location: str, folder: str) -> None:
    # Where another process has emptied and removed the folder, there is nothing to keep.
    with suppress(NotFoundError), explained(location):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _stage(
    location: str, content: bytes, roots: Sequence[str] = (), *, after_ns: int = 0
) -> _Staged:
    path = local_name(location)
    folders = [os.path.dirname(path)]
    with explained(location):
        try:
            _require_no_links(folders[0], roots)
            descriptor, temporary = _open_temporary(location, folders, roots)
        except NotADirectoryError as error:
            raise SettingsError(
                f"`{location}`: something above it is not a folder, or is a link, which is not"
                " followed there"
            ) from error
        try:
            _write(descriptor, content)
            _stamp(descriptor, after_ns)
        except OSError:
            os.close(descriptor)
            os.unlink(temporary)
            raise
    return _Staged(location, path, temporary, descriptor, folders)


def _require_no_links(folder: str, roots: Sequence[str]) -> None:
    """Refuse a folder behind a link: no listing shows it. Errors: `NotADirectoryError`."""
    if root_of(folder, roots) is not None:
        with suppress(FileNotFoundError):
            os.close(open_folder(folder, roots, PASS))


def _write(descriptor: int, content: bytes) -> None:
    """Write all of the content: the system may take a part at a time."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
        progressed()


def _stamp(descriptor: int, after_ns: int) -> None:
    """Give the file a modification time of its own, later than `after_ns`, for its etag.

    The system's own times advance in ticks of milliseconds, and inode numbers are used again at
    once, so two contents of one name could look alike.
    """
    modified_ns = os.fstat(descriptor).st_mtime_ns
    modified_ns = max(modified_ns, after_ns + 1) + next(_numbers) % 1_000_000
    os.utime(descriptor, ns=(modified_ns, modified_ns))


def _open_temporary(location: str, folders: list[str], roots: Sequence[str]) -> tuple[int, str]:
    """Open a new file in the first folder; make that as often as another process removes it, and
    add those that it was made in.
    """
    folder = folders[0]
    for _ in range(_ATTEMPTS_MAX):
        temporary = f"{folder}/{TEMPORARY_PREFIX}{os.getpid()}-{next(_numbers)}{TEMPORARY_SUFFIX}"
        try:
            mode = _mode(0o666, folder, temporary, roots)
            return os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), temporary
        except FileExistsError:
            continue
        except FileNotFoundError:
            _make_folder(folder, folders, roots)
    if os.path.isdir(os.path.dirname(folder)):
        raise SettingsError(f"`{location}`: no folder can be made in `{os.path.dirname(folder)}`")
    raise StorageUnavailableError(f"`{location}`: the folder `{folder}` vanishes again and again")


def _make_folder(folder: str, made_in: list[str], roots: Sequence[str]) -> None:
    """Make a folder and those above it, and note in which, also where another was the quicker: it
    may not have synced them yet.
    """
    parent = os.path.dirname(folder)
    try:
        with suppress(FileExistsError):
            os.mkdir(folder, _mode(0o777, parent, folder, roots))
    except FileNotFoundError:
        _make_folder(parent, made_in, roots)
        with suppress(FileExistsError, FileNotFoundError):
            os.mkdir(folder, _mode(0o777, parent, folder, roots))
    if parent not in made_in:
        made_in.append(parent)


def _mode(mode: int, folder: str, made: str, roots: Sequence[str]) -> int:
    """Return the mode of what is made in a folder. Outside of roots the umask alone says what
    others may: a warehouse is theirs to read, also below a home that is not.
    """
    return mode if root_of(made, roots) is None else mode_below(folder, mode)


def _link(item: _Staged) -> None:
    try:
        os.link(item.temporary, item.path)
    except FileExistsError as error:
        # Its creator may not have synced these yet.
        item.folders.extend(_above(item.folders[0]))
        raise AlreadyExistsError(f"`{item.location}` exists") from error
    except FileNotFoundError as error:
        raise StorageUnavailableError(
            f"`{item.location}`: what was written of it, or its folder, was removed meanwhile"
        ) from error
    except OSError as error:
        if error.errno in (errno.EPERM, errno.ENOTSUP, errno.EMLINK):
            raise SettingsError(
                f"`{item.location}`: the file system cannot link files, so nothing can be created"
                " only if absent; use another file system or an object store"
            ) from error
        with explained(item.location):
            raise


# --- Deleting ------------------------------------------------------------------------------------


def delete(locations: Iterable[str], emptied: EmptyFolders) -> Mapping[str, FrazilError]:
    """Delete files, and pass the emptied folders to `emptied`. Return why each of those that remain
    could not be deleted, by location.

    The file with checksums that Hadoop's local file system writes beside each of its files is
    deleted too, so that the deletion of a table's files is complete. Below the folders of
    `emptied`, where only Frazil writes, there are none.
    """
    folders: dict[str, list[tuple[str, str]]] = {}
    for location in locations:
        path = local_name(location)
        folders.setdefault(os.path.dirname(path), []).append((location, path))
    left: list[str] = []
    failures: dict[str, FrazilError] = {}
    for folder, files in folders.items():
        try:
            # Where objects are never replaced there is no writer to exclude.
            with nullcontext() if emptied.owns(folder) else _folder_lock(files[0][0], folder):
                is_left = _delete_in_folder(files, emptied, failures)
        except FrazilError as error:
            failures.update((location, error) for location, _ in files)
            continue
        # Behind a link nothing is deleted, no empty folder either.
        if is_left:
            left.append(folder)
    emptied.prune(left)
    return failures


def _delete_in_folder(
    files: Sequence[tuple[str, str]], emptied: EmptyFolders, failures: dict[str, FrazilError]
) -> bool:
    """Delete the files (location and path) of one folder, and add those that remain to `failures`.
    Return whether it was a folder for each of them.
    """
    is_folder = True
    for location, path in files:
        try:
            is_folder = _unlink(location, path, emptied.roots) and is_folder
            if not emptied.owns(os.path.dirname(path)):
                _unlink(location, _checksum_path(path), emptied.roots)
        except FrazilError as error:
            failures[location] = error
    return is_folder


def _checksum_path(path: str) -> str:
    folder, name = os.path.split(path)
    return f"{folder}/.{name}.crc"


def _unlink(location: str, path: str, roots: Sequence[str]) -> bool:
    """Delete a file; False if there is no such folder, or a link above it that is not followed."""
    progressed()
    try:
        with explained(location), looked_up(path, roots) as (name, folder, _):
            try:
                os.unlink(name, dir_fd=folder)
            except FileNotFoundError:
                return True
            except OSError:
                if not _is_folder(name, folder):
                    raise
                if root_of(path, roots) is not None:
                    with suppress(OSError):  # not empty
                        os.rmdir(name, dir_fd=folder)
    except NotFoundError:
        return False
    return True


def _is_folder(name: str, folder: int | None) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


@contextmanager
def _folder_lock(location: str, folder: str) -> Iterator[bool]:
    """Hold the folder's lock among all processes; False where there is no folder to lock."""
    descriptor = _lock_folder(location, folder)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _lock_folder(location: str, folder: str) -> int | None:
    """Lock a folder by polling: a worker thread must not hang on a process that was stopped."""
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


def _try_lock(descriptor: int, folder: str) -> bool:
    """Try to lock: True if locked, and the folder is still the one of that name; else closed."""
    locked = False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        locked = os.path.samestat(os.fstat(descriptor), os.stat(folder))
    except (BlockingIOError, FileNotFoundError):
        return False
    finally:
        if not locked:
            os.close(descriptor)
    return locked
