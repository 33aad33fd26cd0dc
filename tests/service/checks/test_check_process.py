"""Worker processes that hang, are stopped, take too much, die or print: each of their requests gets
a verdict, and the others are read.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from bench.hostile_kinds import KINDS, hostile_request
from committer.errors import InvalidRequestError
from committer.plan.batch.request_check import CheckBasis, Checker
from committer.ports.pointer_swap import LoadedTable
from committer.real_world import RealWorld
from committer.reason import Reason
from committer.request.request_format import EncodedRequest, read_request
from committer.request.table_identifier import TableIdentifier
from committer.service.checks.check_process import PROGRAM, CheckProcess
from committer.service.checks.check_worker import JobLimits
from committer.service.checks.checks import LINE_HERE_BYTES_MAX, Checks
from committer.service.checks.process_reports import COMPONENT, ProcessReports
from committer.service.telemetry.health import Health
from committer.service.telemetry.metrics import Metrics
from tests.corpus.poison import MEMBERS, with_member
from tests.support.builders.bad_requests import good
from tests.support.builders.flights import build_flights
from tests.support.integration.real_harness import flights, until

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(120)]
MIB = 1024 * 1024
TABLE = build_flights(table_uuid=UUID(int=7))
GOOD = good(TABLE, "query-1")
KEY = GOOD.request.inbox_key
# Its line is so long that a process reads it.
LONG = read_request(b" " * LINE_HERE_BYTES_MAX + GOOD.content)
# Enough for a request of some kilobytes on a busy machine, and not long for one that hangs.
SHORT = JobLimits(wall_clock_s=3.0)


def doing(body: str) -> str:
    """Return the program of a process that does this before it reads the request `poison`."""
    patch = f"""
import os, signal
from committer.service.checks import check_worker
read = check_worker.read_request
def patched(content, *, key):
    if key == "poison":
        {body}
    return read(content, key=key)
check_worker.read_request = patched
main("""
    return PROGRAM.replace("\nmain(", patch)


@dataclass(frozen=True)
class Opened:
    checks: Checks
    process: CheckProcess
    health: Health
    metrics: Metrics

    def ends(self) -> Counter[str]:
        """Return how many processes have ended, by cause."""
        [family] = self.metrics.instruments.worker_ends.collect()
        return +Counter(
            {
                one.labels["cause"]: int(one.value)
                for one in family.samples
                if one.name.endswith("_total")
            }
        )

    async def read(self, key: str = KEY, producer: str = "producer") -> EncodedRequest:
        return await self.checks.read(LONG.content, key, producer)

    async def refusal(self, content: bytes = LONG.content) -> InvalidRequestError:
        with pytest.raises(InvalidRequestError) as refused:
            await self.checks.read(content, "poison", "producer")
        return refused.value


@asynccontextmanager
async def opened(program: str = PROGRAM, limits: JobLimits = SHORT) -> AsyncIterator[Opened]:
    process, health, metrics = CheckProcess(program, limits), Health(RealWorld()), Metrics()
    reports = ProcessReports(health, metrics)
    checks = Checks([process], CheckProcess(program, limits), reports, here_bytes_max=0)
    try:
        yield Opened(checks, process, health, metrics)
    finally:
        await checks.close()


# --- Limits --------------------------------------------------------------------------------------


async def test_a_job_that_waits_for_ever_meets_the_limit_of_the_clock() -> None:
    async with opened(doing("signal.pause()")) as here:
        with capture_logs() as events:
            error = await here.refusal()
        assert error.reason == Reason.REQUEST_TOO_LARGE
        assert "3 s of time" in str(error)
        ends = [one for one in events if one["event"] == "worker_process.ended"]
        assert [(one["cause"], one["key"], one["is_last"]) for one in ends] == [
            ("wall_clock", "'poison'", False),
            ("wall_clock", "'poison'", True),
        ]
        assert here.ends() == {"wall_clock": 2}
        assert "wall_clock" in here.health.conditions[COMPONENT]
        assert (await here.read()).request == GOOD.request
        assert COMPONENT not in here.health.conditions


async def test_a_process_that_is_stopped_is_killed_and_its_request_is_read_by_another() -> None:
    async with opened() as here:
        await here.read()
        pid = here.process.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        assert (await here.read()).request == GOOD.request
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        assert here.ends() == {"wall_clock": 1}


async def test_a_job_that_a_stopped_process_does_not_take_is_bounded_as_well() -> None:
    """More than the pipe holds, so that the sender waits."""
    async with opened() as here:
        await here.read()
        assert here.process.pid is not None
        os.kill(here.process.pid, signal.SIGSTOP)
        content = b" " * (4 * MIB - 2_000) + GOOD.content
        assert (await here.checks.read(content, KEY, "producer")).request == GOOD.request


async def test_a_job_that_takes_memory_is_ended_from_outside() -> None:
    limits = JobLimits(memory_bytes=64 * MIB)
    greedy = "held = [bytearray(b'x' * 2**20) for _ in range(100)]; signal.pause()"
    async with opened(doing(greedy), limits) as here:
        error = await here.refusal()
        assert error.reason == Reason.REQUEST_TOO_LARGE
        assert "64 MiB of memory" in str(error)
        assert here.ends() == {"memory": 2}
        assert (await here.read()).request == GOOD.request


async def test_a_job_that_meets_the_limit_of_the_process_itself_is_refused_as_well() -> None:
    """Zeros take no memory until they are written to, so that the parent sees nothing."""
    limits = JobLimits(memory_bytes=64 * MIB)
    async with opened(doing("held = bytes(512 * 2**20)"), limits) as here:
        error = await here.refusal()
        assert error.reason == Reason.REQUEST_TOO_LARGE
        assert "64 MiB of memory" in str(error)


async def test_a_manifest_that_inflates_to_more_memory_than_there_is_for_it_is_refused() -> None:
    metadata = flights("memory://warehouse/db/t", format_version=2)
    table = LoadedTable(TableIdentifier.parse("db.t"), metadata, "memory://warehouse/db/t/v1")
    checker = Checker(CheckBasis.of("frazil", metadata), metadata.current_schema)
    assert "a bomb" in KINDS
    bomb = hostile_request("a bomb", table, "hostile", 3)
    async with opened(limits=JobLimits()) as here:
        read = await here.checks.read(bomb.content, bomb.key, "producer")
        with pytest.raises(InvalidRequestError, match="memory") as refused:
            await here.checks.check(checker, read, "producer", None, 2**30)
        assert refused.value.reason == Reason.REQUEST_TOO_LARGE
        assert (await here.read()).request == GOOD.request


async def test_a_job_that_takes_processor_time_is_refused_at_once() -> None:
    limits = JobLimits(processor_s=1)
    busy = "exec('while True: pass')"
    async with opened(doing(busy), limits) as here:
        error = await here.refusal()
        assert error.reason == Reason.REQUEST_TOO_LARGE
        assert "1 s of processor time" in str(error)
        assert here.ends() == {"processor_time": 1}


# --- Lines that ended a process once -------------------------------------------------------------


@pytest.mark.timeout(240)
async def test_no_line_ends_the_process_that_reads_it() -> None:
    async with opened(limits=JobLimits()) as here:
        await here.read()
        pid = here.process.pid
        for name, (reason, member) in MEMBERS.items():
            content = b" " * LINE_HERE_BYTES_MAX + with_member(member, GOOD.content)
            assert (name, (await here.refusal(content)).reason) == (name, reason)
            assert here.process.pid == pid, name
        assert here.ends() == {}


# --- Neighbors -----------------------------------------------------------------------------------


def noting(path: Path, body: str) -> str:
    """Return a program whose processes note each job that they begin, and the same for `poison`."""
    note = f"""
    with open({str(path)!r}, "a") as notes:
        notes.write(f"{{os.getpid()}} {{key}}\\n")
    if key"""
    return doing(body).replace("\n    if key", note)


async def test_what_ended_a_process_is_tried_again_alone_and_the_others_are_read(
    tmp_path: Path,
) -> None:
    notes = tmp_path / "notes"
    async with opened(noting(notes, "os.kill(os.getpid(), signal.SIGKILL)")) as here:
        reads = [here.read("poison")] + [here.read(producer=f"p{n}") for n in range(4)]
        first, *others = await asyncio.gather(*reads, return_exceptions=True)
        assert here.ends() == {"other": 2}
    assert isinstance(first, InvalidRequestError)
    assert first.reason == Reason.PLAN_FAILED
    assert "SIGKILL" in str(first)
    assert [one.request for one in others if isinstance(one, EncodedRequest)] == [GOOD.request] * 4
    begun = [line.split(" ", 1) for line in notes.read_text().splitlines()]
    poisoned = [pid for pid, key in begun if key == "poison"]
    assert len(poisoned) == 2
    assert [key for pid, key in begun if pid == poisoned[1]] == ["poison"]
    # None of the others was begun twice.
    assert len(begun) == 6


async def test_a_request_whose_process_was_killed_by_chance_is_read_by_the_next(
    tmp_path: Path,
) -> None:
    mark = tmp_path / "was-here"
    once = f"""if not os.path.exists({str(mark)!r}):
            open({str(mark)!r}, "w")
            os.kill(os.getpid(), signal.SIGKILL)"""
    async with opened(doing(once)) as here:
        with pytest.raises(InvalidRequestError, match="found under the key `poison`"):
            await here.read("poison")
        assert here.ends() == {"other": 1}


# --- Starts --------------------------------------------------------------------------------------


async def test_a_process_that_does_not_start_is_no_fault_of_a_request(tmp_path: Path) -> None:
    mark = tmp_path / "may-start"
    program = f"import os\nif not os.path.exists({str(mark)!r}):\n    raise SystemExit(3)\n"
    async with opened(program + PROGRAM) as here:
        reading = asyncio.ensure_future(here.read())
        await until(lambda: COMPONENT in here.health.conditions, "the condition")
        assert "code 3" in here.health.conditions[COMPONENT]
        mark.touch()
        assert (await reading).request == GOOD.request
        assert here.health.conditions == {}
        assert here.ends() == {}


# --- Words ---------------------------------------------------------------------------------------


async def test_what_a_process_prints_is_logged_a_few_lines_of_each_job(
    capfd: pytest.CaptureFixture[str],
) -> None:
    words = "memory allocation of 142606336 bytes failed"
    body = f"print('to stdout', flush=True); os.write(2, b'{words}\\n' * 1000 + b'x' * 5000)"
    with capture_logs() as events:
        async with opened(doing(body)) as here:
            await here.refusal()
    printed = [one for one in events if one["event"] == "worker_process.printed"]
    assert [one["message"] for one in printed[:2]] == ["to stdout", words]
    assert len(printed) == 20
    assert {one["log_level"] for one in printed} == {"warning"}
    assert capfd.readouterr().err == ""
