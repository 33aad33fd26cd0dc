"""The answers that grow with the number of tables: how much work each is, shared and compressed."""

from __future__ import annotations

import asyncio
import gzip
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from committer.ports.pointer_swap import Unknown
from committer.request.table_identifier import TableIdentifier
from committer.service.process.http import ANSWER_KEPT_S, ServedNames, application
from committer.service.process.status_collector import StatusCollector
from committer.service.process.status_model import Status
from committer.service.telemetry.instruments import SLICE_SAMPLES
from committer.service.telemetry.metrics import Landing, Metrics
from tests.support.service.scraping import Page
from tests.support.service.service_harness import INBOX, ServiceHarness

VIRTUAL_TIME = True
TABLES = 400


def harness_of(tables: int) -> ServiceHarness:
    """Return a committer that has committed to so many tables."""
    harness = ServiceHarness()
    commit_to(harness.metrics, tables)
    return harness


def commit_to(metrics: Metrics, tables: int) -> None:
    landing = Landing(
        files=1,
        rows=10,
        size_bytes=100,
        duration_s=0.1,
        waits_s=[0.2],
        now_ms=1_800_000_000_000,
        metadata_bytes=1_000,
    )
    for number in range(tables):
        identifier = TableIdentifier.parse(f"db.table_{number:05d}")
        metrics.committed(identifier, landing)
        metrics.swap_answered(identifier, Unknown("lost"))


# --- Work ----------------------------------------------------------------------------------------


def operations(work: Callable[[], object]) -> int:
    """Return how many operations of the interpreter it takes."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("name", ["status_parts", "page_parts"])
async def test_an_answer_takes_as_much_work_for_each_table_however_many_there_are(
    name: str,
) -> None:
    def work(tables: int) -> int:
        parts = getattr(harness_of(tables).status_collector, name)
        return operations(lambda: list(parts()))

    few, some, many = (work(tables) for tables in (20, 40, 80))
    assert many - some < 2.2 * (some - few)


async def test_no_part_of_the_page_has_more_values_than_a_slice() -> None:
    collector = harness_of(TABLES).status_collector
    parts = [part.decode() for part in collector.page_parts()]
    values = [sum(not line.startswith("#") for line in part.splitlines()) for part in parts]
    assert max(values) <= SLICE_SAMPLES
    assert sum(values) > 4 * TABLES + SLICE_SAMPLES
    page = Page("".join(parts))
    for number in range(TABLES):
        name = f"db.table_{number:05d}"
        assert page("frazil_swap_answers_total", table=name, answer="unknown") == 1
        assert page("frazil_committed_rows_total", table=name) == 10
    assert "".join(parts).count("# HELP frazil_swap_answers_total ") == 1


async def test_no_part_of_the_status_has_more_tables_than_a_slice() -> None:
    parts = list(harness_of(TABLES).status_collector.status_parts())
    assert max(part.count(b'"table":') for part in parts) == TABLES // 2
    status = Status.model_validate_json(b"".join(parts))
    assert [one.table for one in status.tables] == [f"db.table_{one:05d}" for one in range(TABLES)]
    assert all(one.rows == 10 and one.swaps["unknown"] == 1 for one in status.tables)


# --- Sharing -------------------------------------------------------------------------------------


class CountingCollector(StatusCollector):
    """Counts how often each answer is made."""

    def __init__(self, harness: ServiceHarness) -> None:
        super().__init__(harness, catalog="frazil", inbox=INBOX)
        self.made = 0
        self.parts = 0

    def page_parts(self) -> Iterator[bytes]:
        self.made += 1
        for part in super().page_parts():
            self.parts += 1
            yield part

    def status_parts(self) -> Iterator[bytes]:
        self.made += 1
        for part in super().status_parts():
            self.parts += 1
            yield part


async def ask(served: web.Application, path: str, **headers: str) -> web.Response:
    request = make_mocked_request("GET", path, headers=headers, app=served)
    resolved = await served.router.resolve(request)
    answer = await resolved.handler(request)
    assert isinstance(answer, web.Response)
    return answer


async def _count_turns(turns: list[int]) -> None:
    while True:
        turns.append(1)
        await asyncio.sleep(0)


@pytest.mark.parametrize("path", ["/status", "/metrics"])
async def test_clients_that_ask_at_once_share_an_answer_and_the_loop_continues_meanwhile(
    path: str,
) -> None:
    collector = CountingCollector(harness_of(TABLES))
    served = application(collector)
    turns: list[int] = []
    counting = asyncio.create_task(_count_turns(turns))
    answers = await asyncio.gather(*(ask(served, path) for _ in range(8)))
    counting.cancel()
    assert collector.made == 1
    assert len({answer.body for answer in answers}) == 1
    assert len(turns) >= collector.parts > 4


@pytest.mark.parametrize("path", ["/status", "/metrics"])
async def test_an_answer_is_given_again_for_a_moment_and_then_made_anew(path: str) -> None:
    collector = CountingCollector(harness_of(1))
    served = application(collector)
    first = await ask(served, path)
    commit_to(collector.metrics, 1)
    assert (await ask(served, path)).body == first.body
    assert collector.made == 1
    await asyncio.sleep(ANSWER_KEPT_S)
    assert (await ask(served, path)).body != first.body
    assert collector.made == 2


async def test_a_client_that_goes_away_does_not_end_the_answer_of_another() -> None:
    served = application(harness_of(TABLES).status_collector)
    first, second = (asyncio.create_task(ask(served, "/status")) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).status == 200


# --- Compression ---------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/status", "/metrics"])
@pytest.mark.parametrize("accepted", ["gzip", "deflate, GZIP;q=0.5", "br , gzip ; q=1"])
async def test_a_client_that_takes_gzip_gets_a_tenth_of_the_bytes(path: str, accepted: str) -> None:
    served = application(harness_of(TABLES).status_collector)
    plain = await ask(served, path)
    packed = await ask(served, path, **{"Accept-Encoding": accepted})
    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Content-Encoding"] == "gzip"
    assert packed.headers["Vary"] == "Accept-Encoding"
    assert packed.headers["Content-Type"] == plain.headers["Content-Type"]
    assert isinstance(packed.body, bytes) and isinstance(plain.body, bytes)
    assert gzip.decompress(packed.body) == plain.body
    assert len(packed.body) * 10 < len(plain.body)


@pytest.mark.parametrize("accepted", ["", "identity", "gzip;q=0", "gzip; q=0.000", "xgzip"])
async def test_a_client_that_takes_no_gzip_gets_none(accepted: str) -> None:
    served = application(harness_of(TABLES).status_collector)
    answer = await ask(served, "/metrics", **{"Accept-Encoding": accepted})
    assert "Content-Encoding" not in answer.headers


# --- Names ---------------------------------------------------------------------------------------

SAFE = ["localhost", "LocalHost:8181", "localhost.", "127.0.0.1:8181", "[::1]:8181", "10.0.0.7"]
OTHER = ["rebound.example", "rebound.example:8181", "localhost.rebound.example", "127.0.0.1.x", ""]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.3.2.1", "::1", "localhost"])
def test_on_a_loopback_address_only_names_that_no_page_can_take_are_served(host: str) -> None:
    names = ServedNames.from_settings(host, "")
    assert all(names.serves(name) for name in (*SAFE, None))
    assert not any(names.serves(name) for name in (*OTHER, "[::1", "a:b:c"))


def test_names_that_an_operator_lists_are_served_and_no_others_on_any_address() -> None:
    for host in ("127.0.0.1", "0.0.0.0"):
        names = ServedNames.from_settings(host, "frazil.internal, Proxy.example,")
        assert all(names.serves(name) for name in (*SAFE, "FRAZIL.internal:80", "proxy.example."))
        assert not any(names.serves(name) for name in OTHER)


def test_on_another_address_every_name_is_served() -> None:
    names = ServedNames.from_settings("0.0.0.0", "")
    assert all(names.serves(name) for name in (*SAFE, *OTHER, None))
