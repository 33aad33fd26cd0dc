"""A real committer whose inbox others fill with everything that a file system can hold: good
neighbors land, each entry is named once, and the process ends when it is told to.
"""

from __future__ import annotations

import os
import signal
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

import pytest
from redis.asyncio import Redis

from committer.ports.pointer_swap import LoadedTable
from committer.ports.queue import shard_of
from committer.queue.redis_keys import lease_keys, shard_key
from committer.request.request_format import EncodedRequest
from committer.storage.inbox.inbox import Inbox
from tests.support.builders.bad_requests import refer
from tests.support.builders.request_builders import build_line, build_request, seal
from tests.support.builders.table_builders import build_table
from tests.support.integration.real_harness import RealHarness, real_harness, until

pytestmark = [pytest.mark.server, pytest.mark.timeout(180)]

TABLE = "db.flights"
NEIGHBORS = 6


def make_socket(path: Path) -> None:
    folder = os.open(path.parent, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"/proc/self/fd/{folder}/{path.name}")
    os.close(folder)


def make_device(path: Path) -> None:
    try:
        os.mknod(path, 0o666 | 0o020000, os.makedev(1, 3))
    except PermissionError:
        print("no device is among the entries: only root can make one")


def make_sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


def make_tree(path: Path) -> None:
    for _ in range(200):
        path.mkdir()
        path /= "d"
    path.write_bytes(b"x")


ENTRIES: dict[str, Callable[[Path], object]] = {
    "loop": lambda path: path.symlink_to(path),
    "link": lambda path: path.symlink_to("/etc/hostname"),
    "link-to-folder": lambda path: path.symlink_to("/"),
    "fifo": os.mkfifo,
    "socket": make_socket,
    "device": make_device,
    "sparse": make_sparse,
    "tree": make_tree,
    "empty-folder": lambda path: path.mkdir(),
    os.fsdecode(b"not-\xff-utf-8"): lambda path: path.write_bytes(b"x"),
    "new\nline\x1b[2J": lambda path: path.write_bytes(b"rubbish\n"),
    "file": lambda path: path.write_bytes(b"rubbish\n"),
}


def places(root: Path, table: UUID) -> Iterator[Path]:
    """Yield every level of the inbox, and the folders beside it."""
    for inside in ("", f"{table}", f"{table}/query", f"{table}/query/epoch"):
        yield root / "inbox" / inside
    for beside in ("quarantine", "witness", "upkeep"):
        yield root / beside


def fill(root: Path, table: LoadedTable) -> list[str]:
    """Make entries everywhere, also in the very places of requests; return the keys of those."""
    for folder in places(root, table.metadata.require_uuid()):
        folder.mkdir(parents=True, exist_ok=True)
        for name, make in ENTRIES.items():
            make(folder / name)
    keys = []
    for name in ("loop", "link", "link-to-folder", "fifo", "socket", "sparse", "empty-folder"):
        key = build_request(table, producer=f"bad-{name}").request.inbox_key
        path = root / "inbox" / key
        path.parent.mkdir(parents=True)
        ENTRIES[name](path)
        keys.append(key)
    (root / "inbox/hard-link").hardlink_to(root / "inbox/file")
    return keys


async def create_table(harness: RealHarness) -> LoadedTable:
    table = build_table(TABLE, warehouse=harness.warehouse_location)
    async with harness.catalog() as catalog:
        await catalog.create_namespace(table.identifier.namespace)
        await catalog.create_table(table)
    return table


async def put(harness: RealHarness, *requests: EncodedRequest) -> None:
    async with harness.storage() as storage:
        for sealed in requests:
            await Inbox(storage, harness.settings.inbox).put(sealed)


async def files(harness: RealHarness) -> int:
    head = (await harness.load(TABLE)).metadata.current_snapshot
    return int((head.summary or {})["total-data-files"]) if head else 0


async def test_an_inbox_full_of_foreign_entries_keeps_nothing_from_landing() -> None:
    with real_harness() as harness:
        table = await create_table(harness)
        root = harness.folder / "requests"
        keys = fill(root, table)
        manifest = f"{table.metadata.location}/metadata/handed.avro"
        os.mkfifo(manifest.removeprefix("file://"))
        references = (refer(manifest, bytes(100)),)
        line = build_line(table, producer="by-path")
        named = seal(line.model_copy(update={"manifests": references}), ())
        good = [build_request(table, producer=f"good-{n}") for n in range(NEIGHBORS)]
        await put(harness, named, *good)
        await harness.start()

        async def has_landed() -> bool:
            return await files(harness) == NEIGHBORS

        await until(has_landed, "the neighbors land", timeout_s=60)

        def quarantined() -> dict[str, str]:
            return {line["key"]: line["reason"] for line in _quarantined(harness) if "key" in line}

        async def is_judged() -> bool:
            return set(keys) <= quarantined().keys() and any(
                line["reason"] == "manifest_missing" for line in _quarantined(harness)
            )

        await until(is_judged, "what claims a place is quarantined", timeout_s=60)
        found = quarantined()
        assert Counter(found[key] for key in keys) == {
            "request_not_a_file": len(keys) - 1,
            "request_too_large": 1,
        }
        end(harness)
        once = Counter(line["key"] for line in harness.events("inbox.foreign_entry"))
        assert set(once.values()) == {1}
        await harness.start()
        await put(harness, build_request(table, producer="late"))

        async def has_landed_late() -> bool:
            return await files(harness) == NEIGHBORS + 1

        await until(has_landed_late, "a later one lands", timeout_s=60)
        end(harness)
        recorded = Counter(line["key"] for line in _quarantined(harness) if "key" in line)
        assert set(recorded.values()) == {1}, "a restart tells of nothing twice that has a record"


def end(harness: RealHarness) -> None:
    """Stop the committer, which must exit by itself, not by its timeout."""
    harness.signal(signal.SIGTERM)
    assert harness.committer is not None
    assert harness.committer.poll() == 0


def _quarantined(harness: RealHarness) -> list[dict[str, str]]:
    return harness.events("request.quarantined")


async def test_a_key_of_the_queue_that_something_else_takes_is_told_and_heals() -> None:
    with real_harness() as harness:
        table = await create_table(harness)
        await harness.start()
        identity = await harness.identity().ensure()
        key = shard_key(identity, shard_of(table.metadata.require_uuid()))
        members, *_ = lease_keys(identity)
        redis: Redis = Redis.from_url(harness.settings.queue_url)
        try:
            for taken in (key, members):
                await redis.set(taken, "mine")
                component = "leases" if taken == members else f"queue key {taken}"

                async def is_told(component: str = component, taken: str = taken) -> bool:
                    return f"DEL {taken}" in harness.conditions().get(component, "")

                await until(is_told, f"the condition of {taken}", timeout_s=60)
                before = await files(harness)
                await put(harness, build_request(table, producer=f"during-{component}"))

                async def has_landed(before: int = before) -> bool:
                    return await files(harness) == before + 1

                await until(has_landed, "the inbox alone serves its table", timeout_s=60)
                await redis.delete(taken)

                async def is_healthy(component: str = component) -> bool:
                    return component not in harness.conditions()

                await until(is_healthy, f"{taken} heals", timeout_s=60)
        finally:
            await redis.aclose()
        end(harness)
