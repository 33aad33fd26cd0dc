"""Objects as files of this machine (or of a shared file system with hard links and `flock`).

Every call runs as one job of a thread, since there is no asynchronous file I/O; a group of objects
is one job. Creates that come while others are under way share the next job, and with it commits of
the file system's journal. The jobs share nothing but files. A canceled call may still take effect.
How the promises are kept: `durable_writes`.

A mount that hangs takes the threads of one place only: the inbox, the files of each table, and all
other files are places of their own. No call lasts longer than `place_threads` says.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TypeVar

from committer.errors import FrazilError, StorageUnavailableError
from committer.group_commit import GroupCommit, finish_all
from committer.place_threads import ANSWER_S, NoAnswerError, PlaceThreads, caller
from committer.ports.skips import Skips
from committer.ports.storage import NewObject, ObjectInfo, require_deleted
from committer.storage.disk import durable_writes, local_files
from committer.storage.disk.empty_folders import EmptyFolders
from committer.storage.disk.temporaries import FirstWrites
from committer.storage.disk.walk import names_in, walk
from committer.storage.probe import prove_conditions

_LISTED_MAX = 1_000
# Measured on ext4 with 200 creates: 8 jobs of 25 make 2,200 to 2,600 a second, 2 of 100 1,200, one
# for each 1,700. Jobs that sync at one moment share a commit of the journal.
_CREATING_JOBS_MAX = 8
# Of the inbox, which all tables share; of each other place.
_INBOX_THREADS_MAX = 16
_THREADS_MAX = 8
# Beyond this, places without a call under way are forgotten.
_PLACES_MAX = 1_000
_INBOX = "files of the inbox"
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class _Place:
    """The threads of a place, and its creates."""

    threads: PlaceThreads
    creates: GroupCommit[Sequence[NewObject], None]

    async def run(self, location: str, job: Callable[[], _Answer]) -> _Answer:
        try:
            return await self.threads.run(location, job)
        except NoAnswerError as error:
            raise StorageUnavailableError(str(error)) from error


class LocalStorage:
    """Locations are `/path`, `file:/path` or `file:///path`; percent signs stand for themselves.

    `prune_below`: folders (an inbox, say) strictly below which objects are never replaced, and a
    deletion also removes the folders that it leaves empty, as if there were only objects; those
    above the innermost after `quiet_s` without use. Elsewhere empty folders stay: this adapter
    removes no other folder. Others may write to these folders, so below them no link is followed. A
    folder itself may be a link.

    `answer_s`: a call without progress for so long is `StorageUnavailableError`; it may take effect
    later all the same.
    """

    def __init__(
        self,
        *,
        prune_below: Sequence[str] = (),
        quiet_s: float = 60.0,
        answer_s: float = ANSWER_S,
    ) -> None:
        roots = [local_files.local_name(folder) for folder in prune_below]
        self._emptied = EmptyFolders(roots, quiet_s=quiet_s)
        self._roots = self._emptied.roots
        self._first_writes = FirstWrites()
        self._answer_s = answer_s
        self._places: dict[str, _Place] = {}

    async def get(
        self,
        location: str,
        *,
        offset: int = 0,
        length: int | None = None,
        size_bytes_max: int | None = None,
    ) -> bytes:
        return await self._run(
            location,
            partial(
                local_files.read,
                location,
                offset,
                length,
                size_bytes_max=size_bytes_max,
                roots=self._roots,
            ),
        )

    async def head(self, location: str) -> ObjectInfo:
        return await self._run(location, partial(local_files.describe, location, self._roots))

    async def create(self, objects: Sequence[NewObject]) -> None:
        groups: dict[str, list[NewObject]] = {}
        for created in objects:
            groups.setdefault(self._name(created.location), []).append(created)
        await _finish([self._place(name).creates.call(group) for name, group in groups.items()])

    def _create_now(self, groups: Sequence[Sequence[NewObject]]) -> list[Exception | None]:
        answers = durable_writes.create_groups(groups, self._roots)
        for group, error in zip(groups, answers, strict=True):
            locations = [one.location for one in group] if error is None else []
            for path in map(local_files.local_name, locations):
                if local_files.root_of(path, self._roots) is None:
                    self._first_writes.note(path.rpartition("/")[0])
        return answers

    def _prune(self, folder: str) -> None:
        self._emptied.prune((local_files.local_name(folder).rstrip("/"),))

    async def replace(self, location: str, content: bytes, *, etag: str | None) -> str:
        if etag is None:
            return await self._run(
                location, partial(durable_writes.create_with_etag, location, content, self._roots)
            )
        write = partial(durable_writes.replace, location, content, etag, self._roots)
        return await self._run(location, write)

    async def delete(self, locations: Sequence[str]) -> None:
        groups: dict[str, list[str]] = {}
        for location in locations:
            groups.setdefault(self._name(location), []).append(location)
        failures: dict[str, FrazilError] = {}
        for remaining in await _finish([self._delete(group) for group in groups.values()]):
            failures |= remaining
        require_deleted(failures, locations)

    async def _delete(self, locations: Sequence[str]) -> Mapping[str, FrazilError]:
        """Delete files of one place; return why each of those that remain could not be deleted."""
        try:
            return await self._run(
                locations[0], partial(durable_writes.delete, locations, self._emptied)
            )
        except FrazilError as error:
            return dict.fromkeys(locations, error)

    async def list(self, prefix: str, *, skips: Skips | None = None) -> AsyncIterator[ObjectInfo]:
        found = walk(prefix, self._roots, skips, swept=self._prune)
        while page := await self._run(prefix, lambda: tuple(islice(found, _LISTED_MAX))):
            for info in page:
                yield info

    async def names(self, folder: str, *, starts_with: str = "") -> Sequence[str]:
        return await self._run(folder, partial(names_in, folder, starts_with, self._roots))

    async def probe(self, prefix: str) -> None:
        name = f"frazil-probe-{os.urandom(8).hex()}"
        await prove_conditions(self, f"{prefix.removesuffix('/')}/{name}")

    async def close(self) -> None:
        """Release the threads; those that hang are left to themselves."""
        for place in self._places.values():
            place.threads.shutdown(wait=False)
        if busy := [place.threads for place in self._places.values() if not place.threads.is_idle]:
            await asyncio.gather(*(asyncio.to_thread(threads.shutdown) for threads in busy))

    # --- Places ----------------------------------------------------------------------------------

    async def _run(self, location: str, job: Callable[[], _Answer]) -> _Answer:
        return await self._place(self._name(location)).run(location, job)

    def _name(self, location: str) -> str:
        """Return the name of the place of a location."""
        path = local_files.local_name(location)
        if any(path == root or path.startswith(f"{root}/") for root in self._roots):
            return _INBOX
        return f"files of {caller.get()}" if caller.get() else "files"

    def _place(self, name: str) -> _Place:
        place = self._places.get(name)
        if place is None:
            if len(self._places) >= _PLACES_MAX:
                self._forget_idle()
            threads_max = _INBOX_THREADS_MAX if name == _INBOX else _THREADS_MAX
            threads = PlaceThreads(name, threads_max=threads_max, answer_s=self._answer_s)
            creates = GroupCommit[Sequence[NewObject], None](
                partial(self._create_groups, name), lanes=_CREATING_JOBS_MAX
            )
            place = self._places[name] = _Place(threads, creates)
        return place

    def _forget_idle(self) -> None:
        for name, place in tuple(self._places.items()):
            if place.threads.is_idle:
                place.threads.shutdown(wait=False)
                del self._places[name]

    async def _create_groups(
        self, name: str, groups: Sequence[Sequence[NewObject]]
    ) -> Sequence[Exception | None]:
        job = partial(self._create_now, groups)
        return await self._place(name).run(groups[0][0].location, job)


async def _finish(calls: Sequence[Coroutine[object, object, _Answer]]) -> list[_Answer]:
    """Let every call end; the usual one, to one place, needs no task for it."""
    if len(calls) == 1:
        return [await calls[0]]
    return await finish_all(calls)
