"""Worker processes: they answer as a check here does, end with their parent, and their end is a
verdict.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from committer.errors import InvalidRequestError
from committer.plan.batch.request_check import (
    CheckBasis,
    CheckedRequest,
    Checker,
    Inflates,
    NeedsManifests,
)
from committer.ports.pointer_swap import LoadedTable
from committer.real_world import RealWorld
from committer.reason import Reason
from committer.request.request_format import EncodedRequest, read_request
from committer.service.checks.check_process import CheckProcess
from committer.service.checks.check_worker import Job, has_files
from committer.service.checks.checks import (
    LINE_HERE_BYTES_MAX,
    REQUEST_HERE_BYTES_MAX,
    Checks,
    work_here,
)
from committer.service.checks.process_reports import ProcessReports
from committer.service.telemetry.health import Health
from committer.service.telemetry.metrics import Metrics
from tests.support.builders.bad_requests import ASKED, CHECKED, good, inline_files, naming
from tests.support.builders.flights import build_flights
from tests.support.builders.request_builders import build_file, build_line, build_manifest, seal
from tests.support.integration.real_harness import ROOT, until
from tests.support.service.checks_here import ChecksHere

TABLE = build_flights(table_uuid=UUID(int=7))
GOOD = good(TABLE, "query-1")
# Its line is so long that a process reads it.
LONG = read_request(b" " * LINE_HERE_BYTES_MAX + GOOD.content)


def checker_of(table: LoadedTable) -> Checker:
    return Checker(CheckBasis.of("frazil", table.metadata), table.metadata.current_schema)


def checks_by(*processes: CheckProcess, here_bytes_max: int = REQUEST_HERE_BYTES_MAX) -> Checks:
    reports = ProcessReports(Health(RealWorld()), Metrics())
    return Checks(processes, CheckProcess(), reports, here_bytes_max)


@asynccontextmanager
async def processes(here_bytes_max: int = 0) -> AsyncIterator[Checks]:
    checks = checks_by(CheckProcess(), here_bytes_max=here_bytes_max)
    try:
        yield checks
    finally:
        await checks.close()


async def found(checks: Checks, checker: Checker, sealed: EncodedRequest) -> object:
    """Return the outcome of reading and checking a request, in comparable form."""
    key = sealed.request.inbox_key
    try:
        read = await checks.read(sealed.content, key, "producer")
        checked = await checks.check(checker, read, "producer", None, 2**30)
    except InvalidRequestError as error:
        return error.reason, str(error)
    return comparable(checked)


def comparable(checked: CheckedRequest | NeedsManifests | Inflates) -> object:
    if not isinstance(checked, CheckedRequest):
        return checked
    return [
        (one.spec_id, bytes(one.part.content), replace(one.walked, paths=[]))
        for one in checked.manifests
    ]


# --- The same verdicts ---------------------------------------------------------------------------


@pytest.mark.thorough
async def test_a_process_says_of_each_request_what_a_check_here_says() -> None:
    checker = checker_of(TABLE)
    requests = [one.make(TABLE, "bad") for one in (*CHECKED, *ASKED)]
    requests += [GOOD, inline_files(TABLE, "query-2"), naming(TABLE, "query-3")[0]]
    async with processes() as checks:
        for sealed in requests:
            there = await found(checks, checker, sealed)
            assert there == await found(ChecksHere(), checker, sealed)


def damaged(sealed: EncodedRequest) -> list[bytes]:
    content = sealed.content
    return [content[:-1], content + b"more", content[:-1] + bytes((content[-1] ^ 1,))]


@pytest.mark.thorough
@pytest.mark.parametrize("here_bytes_max", [0, REQUEST_HERE_BYTES_MAX])
async def test_a_process_refuses_to_read_what_is_refused_here(here_bytes_max: int) -> None:
    async with processes(here_bytes_max=here_bytes_max) as checks:
        for content in (b"", b"{}\n", *damaged(GOOD), *damaged(LONG)):
            with pytest.raises(InvalidRequestError) as here:
                read_request(content, key=GOOD.request.inbox_key)
            with pytest.raises(InvalidRequestError) as there:
                await checks.read(content, GOOD.request.inbox_key, "producer")
            assert (here.value.reason, str(here.value)) == (there.value.reason, str(there.value))


@pytest.mark.thorough
async def test_manifests_that_are_named_are_checked_as_they_were_read() -> None:
    sealed, manifest = naming(TABLE, "query-1")
    checker = checker_of(TABLE)
    for content in (manifest.content, manifest.content[:-1] + b"x"):
        read = {manifest.location: content}
        async with processes() as checks:
            verdicts = []
            for one in (checks, ChecksHere()):
                try:
                    verdicts.append(comparable(await one.check(checker, sealed, "p", read, 2**30)))
                except InvalidRequestError as error:
                    verdicts.append((error.reason, str(error)))
        assert verdicts[0] == verdicts[1]


async def test_what_a_process_has_read_holds_no_files_and_is_checked_with_them() -> None:
    sealed = inline_files(TABLE, "query-1")
    long = b" " * LINE_HERE_BYTES_MAX + sealed.content
    async with processes() as checks:
        for content in (sealed.content, long):
            read = await checks.read(content, sealed.request.inbox_key, "producer")
            assert read.request.files == ()
            checked = await checks.check(checker_of(TABLE), read, "producer", None, 2**30)
            assert isinstance(checked, CheckedRequest)
            assert checked.files_count == 1


async def test_a_request_with_a_short_line_is_read_without_a_process() -> None:
    process = CheckProcess()
    checks = checks_by(process)
    read = await checks.read(GOOD.content, GOOD.request.inbox_key, "producer")
    assert (read.request, read.body) == (GOOD.request, GOOD.body)
    assert process.pid is None
    await checks.close()


# --- Here ----------------------------------------------------------------------------------------


def many(count: int) -> EncodedRequest:
    """Build a request of so many files, of some bytes each."""
    line = build_line(TABLE, producer="many")
    files = [
        build_file(TABLE.metadata, line.attempt, number=number, partition=("AA",))
        for number in range(count)
    ]
    return seal(line, [build_manifest(TABLE.metadata, files)])


async def test_a_request_of_medium_size_is_checked_without_a_process() -> None:
    process = CheckProcess()
    checks = checks_by(process)
    checker = checker_of(TABLE)
    for one in (GOOD, *(each.make(TABLE, "bad") for each in CHECKED)):
        if not has_files(one.request):
            assert await found(checks, checker, one) == await found(ChecksHere(), checker, one)
    assert process.pid is None
    await checks.close()


@pytest.mark.thorough
async def test_a_request_that_is_larger_or_too_much_work_is_checked_by_a_process() -> None:
    checker = checker_of(TABLE)
    sealed = many(work_here().entries + 1)
    for one, here_bytes_max in ((GOOD, len(GOOD.content) - 1), (sealed, len(sealed.content))):
        process = CheckProcess()
        checks = checks_by(process, here_bytes_max=here_bytes_max)
        assert await found(checks, checker, one) == await found(ChecksHere(), checker, one)
        assert process.pid is not None
        await checks.close()


async def test_the_loop_takes_its_other_steps_between_two_checks() -> None:
    checks = checks_by()
    checker = checker_of(TABLE)
    done: list[str] = []

    async def check() -> None:
        await checks.check(checker, GOOD, "producer", None, 2**30)
        done.append("check")

    async def others() -> None:
        for _ in range(20):
            done.append("other")
            await asyncio.sleep(0)

    await asyncio.gather(*(check() for _ in range(10)), others())
    assert "check check" not in " ".join(done)


# --- Its end -------------------------------------------------------------------------------------


async def test_after_a_request_that_was_given_up_each_gets_its_own_answer() -> None:
    other = good(TABLE, "query-2")
    long = b" " * LINE_HERE_BYTES_MAX + other.content
    async with processes() as checks:
        first, second = (
            asyncio.ensure_future(checks.read(LONG.content, GOOD.request.inbox_key, "producer"))
            for _ in range(2)
        )
        await asyncio.sleep(0)
        second.cancel()
        third = await checks.read(long, other.request.inbox_key, "producer")
        assert (third.request, (await first).request) == (other.request, GOOD.request)


async def test_a_stop_of_the_whole_group_leaves_the_end_to_the_service() -> None:
    process = CheckProcess()
    checks = checks_by(process)
    await checks.read(LONG.content, GOOD.request.inbox_key, "producer")
    pid = process.pid
    assert pid is not None
    for number in (signal.SIGTERM, signal.SIGINT):
        os.kill(pid, number)
    await checks.read(LONG.content, GOOD.request.inbox_key, "producer")
    assert process.pid == pid
    await checks.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


_PARENT = """
import asyncio, os, signal, sys
from committer.service.checks.check_process import CheckProcess
from committer.service.checks.check_worker import ReadJob

async def main():
    process = CheckProcess()
    await process.ask(ReadJob("key"), [b"{}"])
    print(process.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


@pytest.mark.thorough
async def test_a_process_does_not_outlive_a_service_that_is_killed() -> None:
    command = [sys.executable, "-c", _PARENT]
    parent = await asyncio.to_thread(subprocess.run, command, cwd=ROOT, capture_output=True)
    folder = Path(f"/proc/{int(parent.stdout)}")
    await until(lambda: not folder.exists(), "the end of a process without a parent")


# --- Turns ---------------------------------------------------------------------------------------


class Slow(CheckProcess):
    """Answers as a process does, and waits for a sign before."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []
        self.may = asyncio.Semaphore(0)

    async def ask(self, job: Job, buffers: Sequence[bytes]) -> object:  # type: ignore[override]  # never looked at
        self.asked.append(len(buffers[0]))
        await self.may.acquire()
        raise InvalidRequestError(Reason.REQUEST_MALFORMED, "as asked")


async def test_a_greedy_producer_does_not_keep_another_from_its_turn() -> None:
    slow = Slow()
    checks = checks_by(slow)
    contents = [("greedy", bytes(100)) for _ in range(50)]
    waiting = [
        asyncio.ensure_future(checks.read(content, "key", producer))
        for producer, content in (*contents, ("modest", bytes(99)))
    ]
    await asyncio.sleep(0)
    for _ in waiting:
        slow.may.release()
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(answer, InvalidRequestError) for answer in answers)
    assert slow.asked.index(99) <= 2
    await checks.close()


async def test_many_producers_of_one_table_do_not_keep_another_table_from_its_turn() -> None:
    slow = Slow()
    checks = checks_by(slow)
    folders = [(f"crowded/query-{number}", 100) for number in range(50)]
    waiting = [
        asyncio.ensure_future(checks.read(bytes(size), "key", folder))
        for folder, size in (*folders, ("quiet/query", 101))
    ]
    await asyncio.sleep(0)
    for _ in waiting:
        slow.may.release()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert slow.asked.index(101) <= 3
    await checks.close()


async def test_whoever_gives_up_while_waiting_costs_no_turn() -> None:
    slow = Slow()
    checks = checks_by(slow)
    reads = [
        asyncio.ensure_future(checks.read(bytes(size), "key", "producer")) for size in range(1, 6)
    ]
    await asyncio.sleep(0)
    assert slow.asked == [1, 2]
    reads[2].cancel()
    for _ in range(4):
        slow.may.release()
    answers = await asyncio.gather(*reads, return_exceptions=True)
    assert [type(one) for one in answers if not isinstance(one, InvalidRequestError)] == [
        asyncio.CancelledError
    ]
    assert slow.asked == [1, 2, 4, 5]
    await checks.close()


async def test_a_request_goes_to_a_process_that_is_idle() -> None:
    busy, idle = Slow(), Slow()
    checks = checks_by(busy, idle)
    reads = []
    for size in (1, 2, 3):
        reads.append(asyncio.ensure_future(checks.read(bytes(size), "key", "producer")))
        await asyncio.sleep(0)
        if size == 2:
            assert idle.asked == [2]
            idle.may.release()
            await asyncio.gather(reads[1], return_exceptions=True)
    assert (busy.asked, idle.asked) == ([1], [2, 3])
    for slow in (busy, idle):
        slow.may.release()
    await asyncio.gather(*reads, return_exceptions=True)
    await checks.close()
