"""The counts of the plain methods, and of the meters before the ports."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from committer.errors import AccessError, AlreadyExistsError, NotFoundError
from committer.ports.catalog import Catalog
from committer.ports.leases import Leases
from committer.ports.queue import Queue
from committer.ports.storage import NewObject, Storage
from committer.request.table_identifier import TableIdentifier
from committer.service.telemetry.instrumented_ports import (
    InstrumentedStorage,
    instrumented,
)
from committer.service.telemetry.metrics import Landing, Metrics, QuarantineSize, UpkeepKind
from tests.support.clock.virtual_time import LoopWorld
from tests.support.memory.memory_storage import MemoryStorage
from tests.support.service.scraping import Page

VIRTUAL_TIME = True
TABLE = TableIdentifier.parse("db.flights")
MEBIBYTE = 1024 * 1024


def page(metrics: Metrics) -> Page:
    return Page(metrics.instruments.page().decode())


def landing(metadata_bytes: int | None) -> Landing:
    return Landing(
        files=1,
        rows=1,
        size_bytes=1,
        duration_s=0.1,
        waits_s=[0.2],
        now_ms=1_800_000_000_000,
        metadata_bytes=metadata_bytes,
    )


def test_the_alarm_of_a_table_is_on_while_its_metadata_is_above_8_mib() -> None:
    metrics = Metrics()
    for size_bytes, alarm in ((8 * MEBIBYTE, 0), (8 * MEBIBYTE + 1, 1), (None, 1), (1, 0)):
        metrics.committed(TABLE, landing(size_bytes))
        assert page(metrics)("frazil_metadata_alarm", table="db.flights") == alarm


def test_upkeep_is_counted_by_what_it_does_and_failures_by_kind() -> None:
    metrics = Metrics()
    for count, kind in enumerate(UpkeepKind, start=1):
        metrics.upkeep_done(TABLE, kind, count)
    metrics.upkeep_failed(TABLE, UpkeepKind.EXPIRE_SNAPSHOTS)
    seen = page(metrics)
    assert seen("frazil_manifests_merged_total", table="db.flights") == 1
    assert seen("frazil_snapshots_expired_total", table="db.flights") == 2
    assert seen("frazil_files_deleted_total", table="db.flights") == 3
    assert seen("frazil_dangling_deletes_removed_total", table="db.flights") == 4
    assert seen("frazil_position_deletes_converted_total", table="db.flights") == 5
    failed = "frazil_upkeep_failures_total"
    assert seen(failed, table="db.flights", kind="expire_snapshots") == 1


def test_a_page_has_a_sentence_for_each_metric_and_no_time_of_birth() -> None:
    metrics = Metrics()
    metrics.committed(TABLE, landing(1))
    text = metrics.instruments.page().decode()
    for one in metrics.instruments.described:
        assert f"# HELP {one.name} {one.text}\n" in text
    assert "_created" not in text


def test_two_processes_worth_of_metrics_share_nothing() -> None:
    first, second = Metrics(), Metrics()
    first.committed(TABLE, landing(1))
    assert page(second)("frazil_commits_total", table="db.flights") is None


# --- Meters --------------------------------------------------------------------------------------


class SlowStorage(MemoryStorage):
    """Takes three seconds to read, and refuses to say what is there."""

    async def get(
        self,
        location: str,
        *,
        offset: int = 0,
        length: int | None = None,
        size_bytes_max: int | None = None,
    ) -> bytes:
        await asyncio.sleep(3.0)
        return await super().get(
            location, offset=offset, length=length, size_bytes_max=size_bytes_max
        )

    async def head(self, location: str) -> Any:
        raise AccessError("no")


async def test_a_meter_counts_and_times_calls_and_weighs_what_they_move() -> None:
    metrics, world = Metrics(), LoopWorld()
    storage = InstrumentedStorage(SlowStorage(), metrics.meter("inbox", world))
    objects = [NewObject(f"memory://a/{number}", b"12345") for number in range(3)]
    await storage.create(objects)
    await storage.get("memory://a/0")
    await storage.get("memory://a/0", offset=1, length=2)
    await storage.replace("memory://a/new", b"1", etag=None)
    assert [info.size_bytes async for info in storage.list("memory://a/")] == [5, 5, 5, 1]
    await storage.delete([one.location for one in objects])
    seen = page(metrics)
    calls = "frazil_call_duration_seconds"
    for call, count in {"create": 1, "get": 2, "replace": 1, "list": 1, "delete": 1}.items():
        assert seen(f"{calls}_count", port="inbox", call=call) == count
    assert seen(f"{calls}_sum", port="inbox", call="get") == pytest.approx(6.0)
    assert seen("frazil_storage_objects_total", port="inbox", call="create") == 3
    assert seen("frazil_storage_objects_total", port="inbox", call="delete") == 3
    assert seen("frazil_storage_written_bytes_total", port="inbox") == 16
    assert seen("frazil_storage_read_bytes_total", port="inbox") == 7


async def test_an_error_is_counted_by_its_class_unless_it_is_an_answer_or_a_cancellation() -> None:
    metrics = Metrics()
    storage = InstrumentedStorage(SlowStorage(), metrics.meter("storage", LoopWorld()))
    with pytest.raises(AccessError):
        await storage.head("memory://a/0")
    with pytest.raises(NotFoundError):
        await storage.get("memory://a/0")
    await storage.create([NewObject("memory://a/0", b"")])
    with pytest.raises(AlreadyExistsError):
        await storage.create([NewObject("memory://a/0", b"")])
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1.0):
            await storage.get("memory://a/0")
    seen = page(metrics)
    errors = {labels for name, labels in seen.values if name == "frazil_call_errors_total"}
    assert errors == {
        frozenset({("port", "storage"), ("call", "head"), ("error", "AccessError")}),
    }
    assert seen("frazil_call_duration_seconds_count", port="storage", call="get") == 2


class Recorder:
    """A port and a meter at once: notes each call with its arguments."""

    def __init__(self) -> None:
        self.called: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.timed_calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        async def method(*args: Any, **kwargs: Any) -> Any:
            self.called.append((name, args, kwargs))
            return b"answer"

        return method

    def timed(self, call: str, location: str = "") -> AbstractContextManager[None]:
        @contextmanager
        def noting() -> Iterator[None]:
            self.timed_calls.append(call)
            yield

        return noting()

    def moved(self, call: str, objects: int, size_bytes: int) -> None:
        """Ignore the call."""


WITHOUT_A_CALL = {"objects_before", "list", "close", "release_shards", "taken_keys"}
CALLS = [
    (port, name)
    for port in (Storage, Catalog, Queue, Leases)
    for name, member in vars(port).items()
    if inspect.isfunction(member) and not name.startswith("_") and name not in WITHOUT_A_CALL
]


@pytest.mark.parametrize(("port", "name"), CALLS)
async def test_each_call_of_a_port_is_handed_on_as_it_is_and_counted_by_its_name(
    port: type, name: str
) -> None:
    recorder = Recorder()
    counted: Any = (
        InstrumentedStorage(recorder, recorder)
        if port is Storage
        else instrumented(recorder, port, recorder)
    )
    method, declared = getattr(counted, name), inspect.signature(getattr(port, name))
    parameters = list(declared.parameters.values())[1:]
    args = tuple(
        [NewObject(one.name, b"")] if one.name == "objects" else one.name.encode()
        for one in parameters
        if one.kind is not one.KEYWORD_ONLY
    )
    kwargs = {one.name: one.name for one in parameters if one.kind is one.KEYWORD_ONLY}
    answer = await method(*args, **kwargs)
    assert recorder.called == [(name, args, kwargs)]
    assert recorder.timed_calls == [name]
    if declared.return_annotation != "None":
        assert answer == b"answer"


# --- The quarantine ------------------------------------------------------------------------------


def test_requests_in_quarantine_have_the_name_of_their_table_if_the_catalog_has_it() -> None:
    metrics = Metrics()
    metrics.quarantined("commit_rejected", "db.flights")
    metrics.quarantined("table_unknown", "db.none")
    metrics.quarantined("request_malformed")
    metrics.quarantined("conflict", "db.flights", is_kept=False)
    numbers = page(metrics)
    in_quarantine = "frazil_quarantine_requests"
    assert numbers(in_quarantine, reason="commit_rejected", table="db.flights") == 1
    assert numbers(in_quarantine, reason="table_unknown", table="unknown") == 1
    assert numbers(in_quarantine, reason="request_malformed", table="unknown") == 1
    assert len([name for name, _ in numbers.values if name == in_quarantine]) == 3


def test_requests_in_quarantine_name_a_hundred_tables_those_with_most_of_them_first() -> None:
    metrics = Metrics()
    counts: dict[tuple[str, str | None], int] = {
        ("commit_rejected", f"db.table_{number}"): number + 1 for number in range(150)
    }
    for _ in range(2):
        metrics.show_quarantine(QuarantineSize(counts, size_bytes=1, age_s=1.0))
        metrics.quarantined("commit_rejected", "db.new")
        numbers = page(metrics)
        in_quarantine = "frazil_quarantine_requests"
        found = {
            dict(labels)["table"]: value
            for (name, labels), value in numbers.values.items()
            if name == in_quarantine
        }
        assert len(found) == 101
        assert found["db.table_149"] == 150
        assert "db.table_49" not in found
        assert found["other"] == sum(range(1, 51)) + 1


def test_the_tables_of_the_quarantine_stay_though_another_committer_works_on_them() -> None:
    metrics = Metrics()
    metrics.quarantined("commit_rejected", "db.flights")
    metrics.committed(TABLE, landing(1))
    for _ in metrics.keep_tables(set):
        continue
    numbers = page(metrics)
    in_quarantine = "frazil_quarantine_requests"
    assert numbers(in_quarantine, reason="commit_rejected", table="db.flights") == 1
    assert numbers("frazil_commits_total", table="db.flights") is None
