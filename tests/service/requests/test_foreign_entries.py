"""Foreign entries of the inbox: logged once, and never in the way of a request."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from committer.errors import InvalidRequestError, NotFoundError
from committer.ports.pointer_swap import LoadedTable
from committer.ports.queue import Doorbell
from committer.ports.skips import SkipKind, Skips
from committer.request.receipt_model import ReceiptState
from committer.request.request_format import EncodedRequest, line_digest
from committer.service.requests.foreign_entries import show
from committer.service.requests.listing import Folders
from committer.storage.disk.local import LocalStorage
from committer.storage.inbox.inbox import Inbox, Quarantine, QuarantineRecord
from committer.storage.inbox.replays import Replays
from tests.support.builders.request_builders import build_request
from tests.support.service.service_harness import ServiceHarness

VIRTUAL_TIME = True

Make = Callable[[Path], object]
Lines = list[Any]


def disk_harness(root: Path, **options: Any) -> ServiceHarness:
    """Build a harness whose inbox and quarantine are folders."""
    harness = ServiceHarness(**options)
    storage = LocalStorage(prune_below=[str(root)])
    harness.inbox = Inbox(storage, str(root))
    harness.quarantine = Quarantine(storage, str(root))
    return harness


def place(root: Path, sealed: EncodedRequest) -> Path:
    """Return the path of the request, and create the folders above it."""
    path = root / "inbox" / sealed.request.inbox_key
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def make_oversized(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


STANDING: dict[str, tuple[Make, str]] = {
    "link to itself": (lambda path: path.symlink_to(path), "request_not_a_file"),
    "link": (lambda path: path.symlink_to("/etc/hostname"), "request_not_a_file"),
    "FIFO": (os.mkfifo, "request_not_a_file"),
    "folder": (lambda path: path.mkdir(), "request_not_a_file"),
    "a tebibyte": (make_oversized, "request_too_large"),
}


async def files(harness: ServiceHarness) -> int:
    metadata = await harness.load()
    head = metadata.current_snapshot
    return int((head.summary or {})["total-data-files"]) if head else 0


async def neighbors(harness: ServiceHarness, table: LoadedTable) -> None:
    for number in range(3):
        await harness.publish(build_request(table, producer=f"good-{number}"), announce=False)


def named(lines: Lines, event: str) -> list[str]:
    return [line.get("kind") or line["reason"] for line in lines if line["event"] == event]


@pytest.mark.parametrize("kind", STANDING)
@pytest.mark.parametrize("with_queue", [True, False])
async def test_what_stands_in_the_place_of_a_request_is_quarantined_by_reference_once(
    tmp_path: Path, kind: str, with_queue: bool
) -> None:
    make, reason = STANDING[kind]
    harness = disk_harness(tmp_path, with_queue=with_queue)
    table = await harness.create_table()
    sealed = build_request(table, producer="bad")
    key, path = sealed.request.inbox_key, place(tmp_path, sealed)
    make(path)
    await neighbors(harness, table)
    with capture_logs() as lines:
        async with harness.running(reconcile_interval_s=30.0):
            await harness.settle(200.0)
            assert await files(harness) == 3
            status = harness.status_collector.status()
        await harness.run_until_settled()
    assert named(lines, "request.quarantined") == [reason], "once, a restart included"
    assert named(lines, "inbox.foreign_entry") == []
    record, content = await harness.quarantine.get(key)
    assert (record.reason, record.by_reference, content) == (reason, True, b"")
    assert str(path) in record.message
    assert path.is_symlink() or path.exists(), "nothing of others is removed"
    assert (status.inbox.requests, sum(status.inbox.foreign.values())) == (0, 1)
    assert status.lag_s == 0.0, "it waits for nothing"
    assert not harness.health.conditions


@pytest.mark.parametrize("kind", STANDING)
async def test_a_discarded_reference_takes_its_entry_along(tmp_path: Path, kind: str) -> None:
    harness = disk_harness(tmp_path)
    table = await harness.create_table()
    sealed = build_request(table, producer="bad")
    path = place(tmp_path, sealed)
    STANDING[kind][0](path)
    await harness.run_until_settled()
    replays = Replays(LocalStorage(prune_below=[str(tmp_path)]), str(tmp_path))
    await replays.discard(sealed.request.inbox_key)
    assert not path.is_symlink()
    assert not path.exists()
    with pytest.raises(NotFoundError):
        await harness.quarantine.record(sealed.request.inbox_key)


async def test_a_discarded_reference_leaves_the_request_that_has_taken_the_place(
    tmp_path: Path,
) -> None:
    """Nothing has judged it yet."""
    harness = disk_harness(tmp_path)
    sealed = build_request(await harness.create_table(), producer="bad")
    key = sealed.request.inbox_key
    record = QuarantineRecord(key=key, reason="x", message="", quarantined_at_ms=0)
    assert await harness.quarantine.refer(record)
    assert not await harness.quarantine.refer(record), "told once"
    await harness.inbox.put(sealed)
    replays = Replays(LocalStorage(prune_below=[str(tmp_path)]), str(tmp_path))
    with pytest.raises(InvalidRequestError, match="an entry of the inbox that was never read"):
        await replays.replay(key, harness.world.uuid())
    await replays.discard(key)
    assert await harness.inbox.get(key) == sealed.content
    assert not await harness.quarantine.contains(key)


async def test_a_folder_that_holds_something_stays_where_it_is(tmp_path: Path) -> None:
    harness = disk_harness(tmp_path)
    table = await harness.create_table()
    sealed = build_request(table, producer="bad")
    path = place(tmp_path, sealed)
    path.mkdir()
    (path / "mine").write_bytes(b"x")
    await harness.run_until_settled()
    replays = Replays(LocalStorage(prune_below=[str(tmp_path)]), str(tmp_path))
    await replays.discard(sealed.request.inbox_key)
    assert (path / "mine").read_bytes() == b"x"


@pytest.mark.parametrize("kind", STANDING)
async def test_a_request_that_takes_the_place_later_lands_whatever_was_there_before(
    tmp_path: Path, kind: str
) -> None:
    harness = disk_harness(tmp_path)
    table = await harness.create_table()
    sealed = build_request(table, producer="bad")
    path = place(tmp_path, sealed)
    STANDING[kind][0](path)
    async with harness.running(reconcile_interval_s=30.0):
        await harness.settle(60.0)
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink()
        await harness.publish(sealed, announce=False)
        await harness.settle(300.0)
        assert await files(harness) == 1
    with pytest.raises(NotFoundError):
        await harness.quarantine.record(sealed.request.inbox_key)
    # And an operator who discards late takes nothing of it.
    await harness.publish(sealed, announce=False)
    replays = Replays(LocalStorage(prune_below=[str(tmp_path)]), str(tmp_path))
    await replays.discard(sealed.request.inbox_key)
    assert path.is_file()


async def test_a_malformed_request_that_takes_the_place_later_is_kept_whole(
    tmp_path: Path,
) -> None:
    harness = disk_harness(tmp_path)
    table = await harness.create_table()
    sealed = build_request(table, producer="bad")
    path = place(tmp_path, sealed)
    os.mkfifo(path)
    async with harness.running(reconcile_interval_s=30.0):
        await harness.settle(60.0)
        path.unlink()
        path.write_bytes(b"rubbish\n")
        await harness.settle(100.0)
    record, content = await harness.quarantine.get(sealed.request.inbox_key)
    assert (record.reason, record.by_reference, content) == (
        "request_malformed",
        False,
        b"rubbish\n",
    )


async def test_who_waits_for_an_oversized_request_hears_of_it(tmp_path: Path) -> None:
    harness = disk_harness(tmp_path)
    table = await harness.create_table()
    sealed = build_request(table, producer="bad")
    request = sealed.request
    make_oversized(place(tmp_path, sealed))
    bell = Doorbell(request.table_uuid, request.inbox_key, line_digest(sealed.content), None, "bad")
    await harness.publisher_queue.announce([bell])
    await harness.run_until_settled(seconds=5.0)
    (receipt,) = await harness.receipts("bad")
    assert (receipt.state, receipt.reason) == (ReceiptState.QUARANTINED, "request_too_large")
    assert (await harness.publisher_queue.depth()).waiting == 0


FOREIGN: dict[str, tuple[Make, SkipKind]] = {
    "a": (lambda path: path.symlink_to(path), SkipKind.LINK),
    "b": (os.mkfifo, SkipKind.FIFO),
    os.fsdecode(b"\xff"): (lambda path: path.mkdir(), SkipKind.NAME),
    "e\nf\x1b[31m": (os.mkfifo, SkipKind.FIFO),
}


@pytest.mark.parametrize("level", ["", "{uuid}/", "{uuid}/query/", "{uuid}/query/epoch/"])
async def test_any_other_entry_is_named_once_and_counted_until_it_goes(
    tmp_path: Path, level: str
) -> None:
    harness = disk_harness(tmp_path)
    table = await harness.create_table()
    folder = tmp_path / "inbox" / level.format(uuid=table.metadata.require_uuid())
    folder.mkdir(parents=True)
    for name, (make, _) in FOREIGN.items():
        make(folder / name)
    await neighbors(harness, table)
    with capture_logs() as lines:
        async with harness.running(reconcile_interval_s=30.0):
            await harness.settle(200.0)
            assert await files(harness) == 3
            found = harness.status_collector.status().inbox.foreign
            assert found == {"symbolic_link": 1, "fifo": 2, "name": 1}
            (folder / "b").unlink()
            await harness.settle(60.0)
            assert harness.status_collector.status().inbox.foreign["fifo"] == 1
            os.mkfifo(folder / "b")
            await harness.settle(60.0)
    told = named(lines, "inbox.foreign_entry")
    assert sorted(told) == ["fifo", "fifo", "fifo", "name", "symbolic_link"], "again once it is new"
    assert all(line["key"].isprintable() for line in lines if "key" in line)
    assert [found async for found in harness.quarantine.list()] == []


async def test_files_of_any_name_and_at_any_level_leave_the_inbox_for_the_quarantine(
    tmp_path: Path,
) -> None:
    """And none takes a place there that a request may need."""
    harness = disk_harness(tmp_path)
    table = await harness.create_table()
    uuid = str(table.metadata.require_uuid())
    long = "/".join(["n" * 255] * 3)
    names = ("file", f"{uuid}x", f"{uuid}/p/file", f"{uuid}/p/e/n\n\x1b[2J", long)
    for name in names:
        path = tmp_path / "inbox" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"rubbish\n")
    await neighbors(harness, table)
    with capture_logs() as lines:
        async with harness.running(reconcile_interval_s=30.0):
            await harness.settle(100.0)
            assert await files(harness) == 3
    assert all(line["key"].isprintable() for line in lines if "key" in line)
    assert not [line for line in lines if line["log_level"] == "error"]
    assert [one.key async for one in harness.inbox.list()] == []
    keys = [one.key async for one in harness.quarantine.list()]
    assert len(keys) == len(names)
    assert all(key.startswith("stray/") for key in keys)
    assert {(await harness.quarantine.record(key)).key for key in keys} == set(names)


async def test_a_file_in_the_place_of_a_tables_folder_blocks_no_quarantine_of_its_requests(
    tmp_path: Path,
) -> None:
    harness = disk_harness(tmp_path)
    table = await harness.create_table()
    uuid = str(table.metadata.require_uuid())
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / uuid).write_bytes(b"rubbish\n")
    async with harness.running(reconcile_interval_s=30.0):
        await harness.settle(60.0)
        refused = build_request(table, producer="bad")
        path = place(tmp_path, refused)
        path.write_bytes(b"rubbish\n")
        await harness.settle(60.0)
    assert (
        await harness.quarantine.record(refused.request.inbox_key)
    ).reason == "request_malformed"
    assert not path.exists()


async def test_of_a_producer_whose_folder_cannot_be_seen_nothing_is_known_to_be_gone(
    tmp_path: Path,
) -> None:
    """A hidden folder may hold landed requests: its producer's epochs are not forgotten in the
    meantime.
    """
    harness = disk_harness(tmp_path)
    folders, skips = Folders(), Skips(levels_max=4)
    folders.cannot_see(skips, harness.inbox)
    skips.add(harness.inbox.location("u/q/e"), SkipKind.NO_ACCESS)
    skips.add(harness.inbox.location("v"), SkipKind.NO_ACCESS)
    skips.add(harness.inbox.location("w"), SkipKind.FIFO)
    names = ("u/p", "u/q", "v/p", "w/p")
    assert [name for name in names if name in folders] == ["u/q", "v/p"]


async def test_a_link_in_the_place_of_the_whole_inbox_is_named(tmp_path: Path) -> None:
    harness = disk_harness(tmp_path / "requests")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "requests").mkdir()
    (tmp_path / "requests/inbox").symlink_to(tmp_path / "elsewhere")
    with capture_logs() as lines:
        async with harness.running(reconcile_interval_s=30.0):
            await harness.settle(100.0)
    told = [line["key"] for line in lines if line["event"] == "inbox.foreign_entry"]
    assert told == [f"{tmp_path}/requests/inbox"]


async def test_entries_of_other_folders_are_named_once(tmp_path: Path) -> None:
    skips = Skips(levels_max=4)
    skips.add(str(tmp_path / "inbox" / "u"), SkipKind.NO_ACCESS)
    harness = disk_harness(tmp_path)
    with capture_logs() as lines:
        known = show("witness", skips, harness.metrics, frozenset())
        show("witness", skips, harness.metrics, known)
    assert named(lines, "inbox.foreign_entry") == ["no_access"]
