"""Objects as files of this machine (or of a shared file system with hard links and `flock`).

Every call runs as one job of a thread, since there is no asynchronous file I/O; a group of objects
is one job. Creates that come while others are under way share the next job, and with it commits of
the file system's journal. The jobs share nothing but files. A canceled call may still take effect.
How the promises are kept: `durable_writes`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import TypeVar

from committer.group_commit import GroupCommit
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
_THREADS_MAX = 16
_Answer = TypeVar("_Answer")


class LocalStorage:
    """Locations are `/path`, `file:/path` or `file:///path`; percent signs stand for themselves.

    `prune_below`: folders (an inbox, say) strictly below which objects are never replaced, and a
    deletion also removes the folders that it leaves empty, as if there were only objects; those
    above the innermost after `quiet_s` without use. Elsewhere empty folders stay: this adapter
    removes no other folder. Others may write to these folders, so below them no link is followed. A
    folder itself may be a link.
    """

    def __init__(self, *, prune_below: Sequence[str] = (), quiet_s: float = 60.0) -> None:
        roots = [local_files.local_name(folder) for folder in prune_below]
        self._emptied = EmptyFolders(roots, quiet_s=quiet_s)
        self._roots = self._emptied.roots
        self._first_writes = FirstWrites()
        self._executor = ThreadPoolExecutor(_THREADS_MAX, "local-storage")
        self._creates = GroupCommit[Sequence[NewObject], None](
            self._create_groups, lanes=_CREATING_JOBS_MAX
        )

    async def get(
        self,
        location: str,
        *,
        offset: int = 0,
        length: int | None = None,
        size_bytes_max: int | None = None,
    ) -> bytes:
        return await self._run(
            partial(
                local_files.read,
                location,
                offset,
                length,
                size_bytes_max=size_bytes_max,
                roots=self._roots,
            )
        )

    async def head(self, location: str) -> ObjectInfo:
        return await self._run(partial(local_files.describe, location, self._roots))

    async def create(self, objects: Sequence[NewObject]) -> None:
        await self._creates.call(objects)

    async def _create_groups(self, groups: Sequence[Sequence[NewObject]]) -> list[Exception | None]:
        return await self._run(partial(self._create_now, groups))

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
                partial(durable_writes.create_with_etag, location, content, self._roots)
            )
        write = partial(durable_writes.replace, location, content, etag, self._roots)
        return await self._run(write)

    async def delete(self, locations: Sequence[str]) -> None:
        failures = await self._run(partial(durable_writes.delete, locations, self._emptied))
        require_deleted(failures, locations)

    async def list(self, prefix: str, *, skips: Skips | None = None) -> AsyncIterator[ObjectInfo]:
        found = walk(prefix, self._roots, skips, swept=self._prune)
        while page := await self._run(lambda: tuple(islice(found, _LISTED_MAX))):
            for info in page:
                yield info

    async def names(self, folder: str, *, starts_with: str = "") -> Sequence[str]:
        return await self._run(partial(names_in, folder, starts_with, self._roots))

    async def probe(self, prefix: str) -> None:
        name = f"frazil-probe-{os.urandom(8).hex()}"
        await prove_conditions(self, f"{prefix.removesuffix('/')}/{name}")

    async def close(self) -> None:
        """Release the threads."""
        await asyncio.to_thread(self._executor.shutdown)

    async def _run(self, job: Callable[[], _Answer]) -> _Answer:
        return await asyncio.get_running_loop().run_in_executor(self._executor, job)
