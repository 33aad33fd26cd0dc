"""The audit on memory storage: what is kept, in which order, and that nothing of it is replaced."""

from __future__ import annotations

from uuid import UUID

import pytest

from committer.errors import AlreadyExistsError
from committer.ports.storage import NewObject
from committer.storage.inbox.audit_log import AuditEntry, AuditLog, Phase, merged
from tests.support.clock.worlds import ManualWorld
from tests.support.faults.counting_storage import CountingStorage
from tests.support.memory.memory_storage import MemoryStorage

ROOT = "memory://requests"
DAY_MS = 86_400_000
NOW_MS = 20_000 * DAY_MS


def entry(number: int, *, at_ms: int = NOW_MS, phase: Phase = "begun", **said: str) -> AuditEntry:
    return AuditEntry(
        entry_id=str(number), at_ms=at_ms, phase=phase, who="ann@host", action="table set", **said
    )


def storage() -> CountingStorage:
    return CountingStorage(MemoryStorage(world=ManualWorld()))


async def test_entries_come_in_the_order_of_their_time_whatever_the_order_of_their_writers() -> (
    None
):
    log = AuditLog(storage(), ROOT)
    late, early = entry(1, at_ms=NOW_MS + 5), entry(2, at_ms=NOW_MS - 2 * DAY_MS)
    await log.append([late], object_id=UUID(int=1))
    await log.append([early, entry(3)], object_id=UUID(int=2))
    page = await log.read(now_ms=NOW_MS)
    assert [one.entry_id for one in page.entries] == ["2", "3", "1"]
    assert page.unreadable == {}
    recent = await log.read(since_ms=NOW_MS, now_ms=NOW_MS)
    assert [one.entry_id for one in recent.entries] == ["1"]


async def test_the_last_hour_reads_the_objects_of_its_days_alone() -> None:
    counted = storage()
    log = AuditLog(counted, ROOT)
    for day in range(100):
        at_ms = NOW_MS - day * DAY_MS
        await log.append([entry(day, at_ms=at_ms)], object_id=UUID(int=day))
    counted.calls.clear()
    await log.read(since_ms=NOW_MS - 3_600_000, now_ms=NOW_MS)
    assert counted.calls["get"] <= 3
    assert counted.calls["list"] <= 4


async def test_an_object_of_the_audit_is_never_replaced() -> None:
    log = AuditLog(storage(), ROOT)
    await log.append([entry(1)], object_id=UUID(int=1))
    await log.append([entry(1)], object_id=UUID(int=1))
    with pytest.raises(AlreadyExistsError):
        await log.append([entry(1, phase="done")], object_id=UUID(int=1))
    assert [one.phase for one in (await log.read(now_ms=NOW_MS)).entries] == ["begun"]


async def test_an_object_that_is_no_audit_is_named_and_hides_no_other() -> None:
    memory = storage()
    log = AuditLog(memory, ROOT)
    await log.append([entry(1)], object_id=UUID(int=1))
    location = f"{log.folder}{2024}-10-04/x"
    await memory.create((NewObject(location, b"nonsense\n"),))
    page = await log.read(now_ms=NOW_MS)
    assert [one.entry_id for one in page.entries] == ["1"]
    assert list(page.unreadable) == [location]


def test_the_begin_and_the_end_of_a_command_are_one_change() -> None:
    begun, done = entry(1, reason="a test"), entry(1, phase="done")
    landed = entry(2, phase="landed")
    changes = merged([begun, landed, done, landed, entry(3)])
    assert [(one.entry_id, one.phase) for one in changes] == [
        ("1", "done"),
        ("2", "landed"),
        ("3", "begun"),
    ]
    assert changes[0].reason == "a test"
