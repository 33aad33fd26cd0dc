"""Inbox keys in the service: parsed at the door, and never again on their way."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from committer.ports.queue import shard_of
from committer.ports.skips import SkipKind
from committer.reason import Reason
from committer.request.request_key import RequestKey, inbox_key, parse_inbox_key
from committer.service.requests import inbox_keys
from committer.service.requests.foreign_entries import ForeignEntries
from committer.service.requests.inbox_keys import InboxKey
from committer.service.telemetry.metrics import Metrics
from committer.storage.inbox.inbox import skips_of
from tests.support.builders.request_builders import build_request
from tests.support.service.outside import put_raw
from tests.support.service.service_harness import ServiceHarness

VIRTUAL_TIME = True


def test_a_key_is_a_name_with_its_parts() -> None:
    table, attempt = UUID(int=1), UUID(int=2)
    key = InboxKey(inbox_key(table, "query/1", 7, attempt))
    assert key == str(key)
    assert key.parts == RequestKey(table, "query/1", 7, attempt)
    assert (key.shard, key.folder) == (shard_of(table), f"{table}/query%2F1")


def test_any_other_name_has_no_parts_and_always_the_same_shard() -> None:
    others = [InboxKey(name) for name in ("", "no key", f"{UUID(int=9)}/q/0/attempt")]
    assert [(key.parts, key.shard) for key in others] == [(None, 0)] * 3


def count_parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of the keys that are parsed from now on."""
    counted: list[str] = []

    def count(key: str) -> RequestKey:
        counted.append(key)
        return parse_inbox_key(key)

    monkeypatch.setattr(inbox_keys, "parse_inbox_key", count)
    return counted


@pytest.mark.parametrize("way", ["inline", "by its key", "found", "unreadable"])
async def test_a_key_is_parsed_once_on_the_way_of_its_request(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = count_parsed(monkeypatch)
    harness = ServiceHarness()
    sealed = build_request(await harness.create_table())
    if way == "unreadable":
        await put_raw(harness, sealed.key, b"nothing that can be read\n")
    else:
        await harness.publish(sealed, announce=way == "inline")
    if way == "by its key":
        await harness.publisher_queue.announce([replace(harness.doorbell(sealed), content=None)])
    await harness.run_until_settled()
    assert await harness.outstanding() == []
    assert len(await harness.quarantined()) == (way == "unreadable")
    assert counted == [sealed.key]


async def test_the_key_of_a_foreign_entry_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = count_parsed(monkeypatch)
    harness = ServiceHarness()
    sealed = build_request(await harness.create_table())
    shard = shard_of(sealed.request.table_uuid)
    entries = ForeignEntries(harness.inbox, harness.quarantine, harness.world, Metrics())
    skips = skips_of()
    skips.add(harness.inbox.location(sealed.key), SkipKind.FIFO)
    await entries.saw(skips, lambda key: key.shard == shard)
    record = await harness.quarantine.record(sealed.key)
    assert record.reason == Reason.REQUEST_NOT_A_FILE.value
    assert counted == [sealed.key]
