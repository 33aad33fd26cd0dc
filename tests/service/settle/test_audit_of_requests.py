"""Requests that alter or delete are in the audit before they leave the inbox; appends are free."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from committer.errors import StorageUnavailableError
from committer.ports.storage import NewObject
from committer.storage.inbox.audit_log import AuditEntry, AuditLog, merged
from committer.storage.inbox.inbox import Inbox
from tests.support.builders.alter_requests import build_alter
from tests.support.builders.operation_requests import build_operation
from tests.support.builders.request_builders import build_request
from tests.support.builders.signing import OLD, print_keys, signed
from tests.support.faults.counting_storage import CountingStorage
from tests.support.faults.faulty_catalog import Fault
from tests.support.service.service_harness import INBOX, KEYS, ServiceHarness

VIRTUAL_TIME = True
ADD_X = {"action": "add-column", "name": "x", "type": "int"}


class ClosedAudit(CountingStorage):
    """A storage whose audit cannot be written while `is_closed`."""

    is_closed = True

    async def create(self, objects: Sequence[NewObject]) -> None:
        if self.is_closed and any("/audit/" in one.location for one in objects):
            raise StorageUnavailableError("the audit is closed")
        await super().create(objects)


class UndeletingStorage(CountingStorage):
    """A storage whose client crashes before each delete."""

    async def delete(self, locations: Sequence[str]) -> None:
        raise StorageUnavailableError("the process has crashed")


async def entries(harness: ServiceHarness) -> list[AuditEntry]:
    log = AuditLog(harness.storage.inner, INBOX)
    page = await log.read(now_ms=harness.world.now_ms())
    assert page.unreadable == {}
    return page.entries


async def test_an_alter_and_a_delete_are_recorded_with_producer_key_and_effect() -> None:
    harness = ServiceHarness(has_keys=True)
    await harness.storage.inner.create((NewObject(KEYS, print_keys(OLD)),))
    table = await harness.create_table()
    first = await harness.load()
    await harness.publish(build_request(table, producer="loader"))
    await harness.run_until_settled()
    before = await harness.load()
    await harness.publish(signed(build_alter(table, ADD_X, producer="operator"), OLD))
    await harness.run_until_settled()
    delete = build_operation(table, "delete", needs={"row-filter": True}, producer="cleaner")
    await harness.publish(delete)
    await harness.run_until_settled()
    altered, deleted = await entries(harness)
    assert (altered.action, altered.producer, altered.key_id) == ("alter", "operator", OLD.key_id)
    assert (altered.phase, altered.table) == ("landed", "db.flights")
    assert altered.before is not None and altered.after is not None
    assert altered.before["columns"] == {"x": None}
    assert altered.after["columns"] == {"x": "int"}
    (change,) = cast("list[dict[str, object]]", altered.after["changes"])
    assert (change["action"], change["name"]) == ("add-column", "x")
    assert "properties" not in altered.after  # the ledger's entries are no change of the table's
    assert (deleted.action, deleted.producer, deleted.key_id) == ("delete", "cleaner", None)
    assert deleted.before is not None and deleted.after is not None
    assert deleted.before["refs"] == {"main": before.current_snapshot_id}
    assert deleted.after["refs"] == {"main": (await harness.load()).current_snapshot_id}
    assert deleted.before["metadata_location"] != deleted.after["metadata_location"]
    assert first.current_snapshot_id is None


async def test_an_append_makes_no_call_for_the_audit_and_a_batch_that_deletes_makes_one() -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    calls: list[int] = []
    async with harness.running():
        await harness.publish(build_request(table, epoch=0))
        await harness.settle(10.0)
        for number in range(1, 4):
            created = harness.inbox_storage.calls["create"]
            await harness.publish(build_request(table, epoch=number))
            await harness.settle(10.0)
            calls.append(harness.inbox_storage.calls["create"] - created)
        created = harness.inbox_storage.calls["create"]
        for number in range(3):
            change = {**ADD_X, "name": f"x{number}"}
            await harness.publish(build_alter(table, change, producer=f"operator-{number}"))
        await harness.settle(10.0)
        calls.append(harness.inbox_storage.calls["create"] - created)
    # Of each request its own object, and nothing else.
    assert calls == [1, 1, 1, 3 + 1]
    assert len(await entries(harness)) == 3


async def test_a_request_stays_in_the_inbox_until_its_entry_is_durable_and_delays_no_append() -> (
    None
):
    harness = ServiceHarness(wrap=ClosedAudit)
    storage = harness.storage.inner
    assert isinstance(storage, ClosedAudit)
    table = await harness.create_table()
    alter = build_alter(table, ADD_X, producer="operator")
    async with harness.running():
        await harness.publish(alter)
        await harness.publish(build_request(table, producer="loader"))
        await harness.settle(10.0)
        assert await harness.outstanding() == [alter.key]
        assert "the audit is closed" in harness.health.conditions["audit"]
        storage.is_closed = False
        await harness.settle(120.0)
        assert await harness.outstanding() == []
        assert "audit" not in harness.health.conditions
    (entry,) = await entries(harness)
    assert (entry.key, entry.producer) == (alter.key, "operator")


@pytest.mark.parametrize("faults", [(), (Fault.LOST_REPLY,)])
async def test_a_change_of_a_committer_that_dies_is_one_change_in_the_audit(
    faults: tuple[Fault, ...],
) -> None:
    harness = ServiceHarness()
    table = await harness.create_table()
    alter = build_alter(table, ADD_X, producer="operator")
    await harness.publish(alter)
    harness.catalog.plan(*faults)
    inbox = harness.inbox
    harness.inbox = Inbox(UndeletingStorage(harness.storage.inner), INBOX)
    await harness.run_until_settled(seconds=5.0)
    harness.inbox = inbox
    assert await harness.outstanding() == [alter.key]
    await harness.run_until_settled()
    assert await harness.outstanding() == []
    (change,) = merged(await entries(harness))
    assert (change.action, change.producer, change.key) == ("alter", "operator", alter.key)
