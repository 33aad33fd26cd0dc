"""Lists local folders that others can write to. Blocking; `local` calls it from worker threads.

No link is followed (below the roots of the storage, none in the path of the listed folder either),
nothing is opened but folders, and one entry never fails the whole: it is skipped, and reported to
`Skips`. Each folder is opened by a descriptor of the one above, so that it cannot be replaced in
the meantime. An entry costs one `stat`, for its size; its kind is known before.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass

from committer.errors import FrazilError, NotFoundError
from committer.place_threads import progressed
from committer.ports.skips import SkipKind, Skips
from committer.ports.storage import ObjectInfo
from committer.storage.disk.local_files import (
    explained,
    info_of,
    kind_of,
    local_name,
    looked_for,
    open_folder,
    root_of,
)
from committer.storage.disk.temporaries import is_temporary, remove_stale

# Of a listing without a limit of its own. Each level holds a descriptor open.
LEVELS_MAX = 64
# Not the fault of one folder: the process or the machine has no more of something.
_SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
# It was deleted in the meantime, or replaced.
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


def walk(
    prefix: str,
    roots: Sequence[str] = (),
    skips: Skips | None = None,
    *,
    swept: Callable[[str], None] = lambda _: None,
) -> Generator[ObjectInfo, None, None]:
    """Yield objects below a folder in ascending order of location. `swept` is called with each
    folder below a root out of which stale temporary files were removed.
    """
    base = prefix if prefix.endswith("/") else f"{prefix}/"
    path = local_name(prefix).rstrip("/") or "/"
    is_guarded = root_of(path, roots) is not None or path in roots
    walker = _Walk(skips, swept, is_guarded=is_guarded)
    try:
        with explained(base):
            folder = open_folder(path, roots)
    except NotFoundError:
        walker.look_at_prefix(base, path)
        return
    yield from walker.below(folder, base)


def names_in(location: str, starts_with: str, roots: Sequence[str] = ()) -> list[str]:
    """Return the names of files and folders directly in a folder, sorted, those of folders with a
    slash at the end. Temporary files and links are left out, and nothing is opened but the folder.
    """
    path = local_name(location).rstrip("/") or "/"
    try:
        with explained(location), looked_for(location):
            folder = open_folder(path, roots)
    except NotFoundError:
        return []
    try:
        with explained(location), os.scandir(folder) as entries:
            return sorted(
                f"{entry.name}/" if entry.is_dir(follow_symlinks=False) else entry.name
                for entry in entries
                if entry.name.startswith(starts_with) and _has_name(entry)
            )
    finally:
        os.close(folder)


def _has_name(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a file or a folder that a location can name."""
    is_kept = entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)
    return is_kept and not is_temporary(entry.name) and _is_text(entry.name)


def _is_text(name: str) -> bool:
    """Return whether any location can hold the name."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


@dataclass(slots=True)
class _Level:
    """A folder that is being listed: its descriptor, location and entries."""

    folder: int
    base: str
    entries: Iterator[tuple[str, os.DirEntry[str]]]


class _Walk:
    """One listing. `is_guarded`: links are not followed; elsewhere those to files are."""

    def __init__(
        self, skips: Skips | None, swept: Callable[[str], None], *, is_guarded: bool
    ) -> None:
        self._skips = skips
        self._swept = swept
        self._is_guarded = is_guarded
        self._levels_max = skips.levels_max if skips else LEVELS_MAX

    def look_at_prefix(self, base: str, path: str) -> None:
        """Look at a prefix that is missing, or no folder:
        a link in the place of a whole inbox must be reported."""
        try:
            mode = os.lstat(path).st_mode
        except OSError:
            return
        if self._is_guarded and (kind := kind_of(mode)):
            self._skip(base.rstrip("/"), kind)

    def below(self, folder: int, base: str) -> Generator[ObjectInfo, None, None]:
        levels: list[_Level] = []
        try:
            levels.append(_Level(folder, base, iter(())))
            levels[-1].entries = iter(self._entries(folder, base))
            while levels:
                level = levels[-1]
                progressed()
                found = next(level.entries, None)
                if found is None:
                    os.close(levels.pop().folder)
                    continue
                key, entry = found
                if key.endswith("/"):
                    self._enter(levels, entry.name, level.base + key)
                elif (status := self._status(entry, level.base + key)) is not None:
                    yield info_of(level.base + key, status)
        finally:
            for level in levels:
                os.close(level.folder)

    def _entries(self, folder: int, base: str) -> list[tuple[str, os.DirEntry[str]]]:
        """List a folder; names of folders end with a slash,
        so that `a.b` sorts before what is below `a`."""
        temporary: list[str] = []
        with explained(base), os.scandir(folder) as entries:
            keyed = [
                (entry.name + "/" if entry.is_dir(follow_symlinks=False) else entry.name, entry)
                for entry in entries
                if self._is_shown(entry.name, base, temporary)
            ]
        if self._is_guarded and remove_stale(temporary, folder):
            self._swept(base)
        return sorted(keyed, key=lambda pair: pair[0])

    def _is_shown(self, name: str, base: str, temporary: list[str]) -> bool:
        if is_temporary(name):
            temporary.append(name)
            return False
        return self._is_named(name, base)

    def _is_named(self, name: str, base: str) -> bool:
        """Return whether any location can name the entry."""
        if name.isascii() or _is_text(name):
            return True
        self._skip(base + ascii(name)[1:-1], SkipKind.NAME)
        return False

    def _enter(self, levels: list[_Level], name: str, base: str) -> None:
        if len(levels) >= self._levels_max:
            self._skip(base.rstrip("/"), SkipKind.DEEP_FOLDER)
            return
        folder = None
        try:
            with explained(base):
                folder = os.open(name, _ENTER, dir_fd=levels[-1].folder)
            entries = iter(self._entries(folder, base))
        except FrazilError as error:
            if folder is not None:
                os.close(folder)
            self._hidden(base.rstrip("/"), error)
            return
        levels.append(_Level(folder, base, entries))

    def _status(self, entry: os.DirEntry[str], location: str) -> os.stat_result | None:
        """Return an entry's status; None for what was deleted meanwhile, or is no file."""
        is_link = entry.is_symlink()
        if is_link and self._is_guarded:
            self._skip(location, SkipKind.LINK)
            return None
        try:
            with explained(location):
                status = entry.stat(follow_symlinks=is_link)
        except FrazilError as error:
            self._hidden(location, error)
            return None
        if stat.S_ISREG(status.st_mode):
            return status
        if kind := kind_of(status.st_mode):
            self._skip(location, kind)
        return None

    def _skip(self, location: str, kind: SkipKind) -> None:
        if self._skips is not None:
            self._skips.add(location, kind)

    def _hidden(self, location: str, error: FrazilError) -> None:
        """Skip an entry that cannot be examined. Errors: its own, where no `Skips` collects it."""
        code = error.__cause__.errno if isinstance(error.__cause__, OSError) else None
        if code in _GONE:
            return
        if self._skips is None or code in _SHORTAGES:
            raise error
        self._skips.add(location, SkipKind.NO_ACCESS)


_ENTER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK
