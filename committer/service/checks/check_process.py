"""One worker process, seen from the service: started on demand, asked, watched, ended."""

from __future__ import annotations

import asyncio
import fcntl
import io
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, cast

from committer.service.checks.check_worker import (
    Answer,
    Job,
    JobLimits,
    TooMuchMemory,
    receive,
    send,
)
from committer.service.telemetry.log import log

PROGRAM = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from committer.service.checks.check_worker import JobLimits, main
main(JobLimits(**json.loads(sys.argv[2])))
"""

# So that a usual job is there before the one in hand is done.
_PIPE_BYTES = 1024 * 1024
# How often a job is looked at: in that time a process takes 50 MiB at most.
_WATCH_MS = 50
# Loading its modules takes a second of processor time.
_START_S_MAX = 60.0
# After SIGKILL. Longer only takes a process that the kernel cannot interrupt.
_END_S_MAX = 10.0
# Of what it prints.
_LINE_BYTES_MAX = 1_000
_LINES_A_JOB_MAX = 20


class Limit(StrEnum):
    """The limits of a job, as metrics and log name them."""

    WALL_CLOCK = "wall_clock"
    PROCESSOR_TIME = "processor_time"
    MEMORY = "memory"


class ProcessEndedError(Exception):
    """The process ended instead of answering. `limit`: the one that its job has met; None where it
    was killed by others, or a library of it has crashed.
    """

    def __init__(self, cause: str, limit: Limit | None = None) -> None:
        super().__init__(cause)
        self.limit = limit


class JobLostError(Exception):
    """The process ended in the job before: this one was not begun."""


class NotStartedError(Exception):
    """The process was not there, or had no modules, within its time: no job was begun."""


class CheckProcess:
    """A process and the threads that talk to it, as pipes block: one sends jobs, one receives
    answers, so that the next job is there when the process is done with one. The process ends when
    its pipe is closed, so it never outlives this process for longer than a job.

    The receiver watches the process from outside, as its limits may be met where no code of ours
    runs: a native library that gets no memory may wait for ever, and a stopped process uses no
    processor time. SIGKILL ends both.
    """

    def __init__(self, program: str = PROGRAM, limits: JobLimits = JobLimits()) -> None:  # noqa: B008  # frozen
        self.limits = limits
        self._program = program
        self._sender = ThreadPoolExecutor(1, "check-send")
        self._receiver = ThreadPoolExecutor(1, "check-receive")
        self._lock = threading.Lock()
        self._worker: _Worker | None = None
        self._is_closed = False

    @property
    def pid(self) -> int | None:
        """The process id, if a process was started."""
        return self._worker.pid if self._worker else None

    async def ask(self, job: Job, buffers: Sequence[bytes]) -> Answer:
        """Return the answer; jobs are done in the order of asking. Errors: `ProcessEndedError`,
        `JobLostError`, `NotStartedError`; the next call starts another process.
        """
        now_s = asyncio.get_running_loop().time
        started = self._sender.submit(self._started)
        sent = self._sender.submit(self._send, started, job, buffers)
        received = self._receiver.submit(self._receive, started, sent, now_s)
        answer = asyncio.wrap_future(received)
        # Of a caller that is canceled, too: what was sent is answered.
        answer.add_done_callback(_retrieved)
        return await asyncio.shield(answer)

    def _started(self) -> _Worker:
        with self._lock:
            if self._worker is None:
                self._worker = _Worker(self._program, self.limits)
            if self._is_closed:
                self._worker.kill()
            return self._worker

    def _send(self, started: Future[_Worker], job: Job, buffers: Sequence[bytes]) -> None:
        # If there is none, or it has ended, there is no answer either.
        with suppress(OSError):
            send(cast("BinaryIO", started.result().process.stdin), job, buffers)

    def _receive(
        self, started: Future[_Worker], sent: Future[None], now_s: Callable[[], float]
    ) -> Answer:
        try:
            worker = started.result()
        except OSError as error:
            raise NotStartedError(str(error)) from error
        if worker.is_ended:
            raise JobLostError
        try:
            worker.wait_until_ready(now_s)
            answer = worker.answer(sent, now_s)
        except _MetLimitError as error:
            self._end(worker)
            raise ProcessEndedError(error.limit, error.limit) from None
        except (OSError, EOFError):
            code = self._end(worker, end_s_max=_END_S_MAX)
            if not worker.is_ready:
                raise NotStartedError(_name_of(code)) from None
            raise ProcessEndedError(_name_of(code), _limit_of(code)) from None
        except BaseException:
            self._end(worker)
            raise
        if isinstance(answer, TooMuchMemory):
            # Libraries that got no memory may be in any state.
            self._end(worker)
            raise ProcessEndedError(Limit.MEMORY, Limit.MEMORY)
        return answer

    def _end(self, worker: _Worker, *, end_s_max: float = 0.0) -> int:
        """End a process and return its exit code. `end_s_max`: how long it may take to end by
        itself, as its pipe is closed.
        """
        with self._lock:
            if self._worker is worker:
                self._worker = None
        code = worker.end(end_s_max)
        # Not while a job is being sent: another file may get the number of a closed pipe.
        self._sender.submit(worker.close)
        return code

    async def end(self) -> None:
        """End the process once its jobs are answered, and give its memory back. The next call
        starts another one.
        """
        await asyncio.wrap_future(self._receiver.submit(self._end_any))

    def _end_any(self) -> None:
        if (worker := self._worker) is not None:
            self._end(worker)

    async def close(self) -> None:
        """End the process, even in the middle of a job."""
        self._is_closed = True
        if (worker := self._worker) is not None:
            worker.kill()
        await asyncio.to_thread(self._receiver.shutdown)
        self._end_any()
        await asyncio.to_thread(self._sender.shutdown)


class _MetLimitError(Exception):
    def __init__(self, limit: Limit) -> None:
        super().__init__(limit)
        self.limit = limit


class _Worker:
    """A running process: its pipes, what it prints, and what its jobs may take. `is_ready`: its
    modules are loaded. Errors of its making: `OSError`.
    """

    def __init__(self, program: str, limits: JobLimits) -> None:
        arguments = [json.dumps(sys.path), json.dumps(asdict(limits))]
        self.process = subprocess.Popen(  # noqa: S603  # our own interpreter
            [sys.executable, "-c", program, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        self.pid = self.process.pid
        self.is_ready = False
        self.is_ended = False
        self._limits = limits
        self._resident_bytes_max = 0
        self._output = _Output(cast("BinaryIO", self.process.stderr), self.pid)
        if self.process.stdin is not None and hasattr(fcntl, "F_SETPIPE_SZ"):
            with suppress(OSError):
                fcntl.fcntl(self.process.stdin, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)

    def wait_until_ready(self, now_s: Callable[[], float]) -> None:
        """Wait until its modules are loaded, which is no part of a job. Errors: `EOFError`."""
        if self.is_ready:
            return
        try:
            receive(self._watched(None, now_s, _START_S_MAX))
        except _MetLimitError:
            raise EOFError from None
        self.is_ready = True
        self._resident_bytes_max = _resident_bytes(self.pid) + self._limits.memory_bytes

    def answer(self, sent: Future[None], now_s: Callable[[], float]) -> Answer:
        """Return the answer to the job that is being sent. Errors: `_MetLimitError`, `EOFError`,
        those of the sending.
        """
        answer, _ = receive(self._watched(sent, now_s, self._limits.wall_clock_s))
        self._output.end_job()
        return cast("Answer", answer)

    def _watched(
        self, sent: Future[None] | None, now_s: Callable[[], float], wall_clock_s: float
    ) -> BinaryIO:
        end_s = now_s() + wall_clock_s

        def check() -> None:
            if sent is not None and sent.done():
                sent.result()
            if now_s() > end_s:
                raise _MetLimitError(Limit.WALL_CLOCK)
            if self.is_ready and _resident_bytes(self.pid) > self._resident_bytes_max:
                raise _MetLimitError(Limit.MEMORY)

        return cast("BinaryIO", _WatchedPipe(cast("io.FileIO", self.process.stdout), check))

    def kill(self) -> None:
        self.process.kill()

    def end(self, end_s_max: float) -> int:
        """Kill it, if it does not end by itself within this time. Return its exit code once what it
        has printed is logged.
        """
        self.is_ended = True
        code = self._exit_code(end_s_max)
        if code is None:
            self.process.kill()
            code = self._exit_code(_END_S_MAX)
        self._output.finish()
        return -signal.SIGKILL if code is None else code

    def _exit_code(self, end_s_max: float) -> int | None:
        try:
            return self.process.wait(end_s_max)
        except subprocess.TimeoutExpired:
            return None

    def close(self) -> None:
        """Close its pipes."""
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


class _WatchedPipe:
    """A pipe that is read, and between its bytes a check is made."""

    def __init__(self, pipe: io.FileIO, check: Callable[[], None]) -> None:
        self._pipe = pipe
        self._check = check
        self._poll = select.poll()
        self._poll.register(pipe, select.POLLIN)

    def readinto(self, buffer: memoryview) -> int | None:
        while not self._poll.poll(_WATCH_MS):
            self._check()
        return self._pipe.readinto(buffer)


class _Output:
    """The lines that a process prints, as events of the log, which is JSON where it is asked for:
    a few lines of each job. The last words of native libraries come this way.
    """

    def __init__(self, pipe: BinaryIO, pid: int) -> None:
        self._pid = pid
        self._lines_left = _LINES_A_JOB_MAX
        self._thread = threading.Thread(
            target=self._log, args=(pipe,), name="check-output", daemon=True
        )
        self._thread.start()

    def end_job(self) -> None:
        """Allow for more lines. Not at the beginning of a job: it is sent before, and prints."""
        self._lines_left = _LINES_A_JOB_MAX

    def finish(self) -> None:
        """Wait until all is logged; the process has ended."""
        self._thread.join(_END_S_MAX)

    def _log(self, raw: BinaryIO) -> None:
        with raw, io.BufferedReader(cast("io.RawIOBase", raw)) as pipe:
            while line := pipe.readline(_LINE_BYTES_MAX):
                text = line.decode(errors="backslashreplace").strip()
                if text and self._lines_left > 0:
                    self._lines_left -= 1
                    log.warning("worker_process.printed", pid=self._pid, message=text)


def _resident_bytes(pid: int) -> int:
    """Return the memory that a process has now; 0 where the system does not say."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def _name_of(code: int) -> str:
    return signal.Signals(-code).name if -code in set(signal.Signals) else f"code {code}"


def _limit_of(code: int) -> Limit | None:
    return Limit.PROCESSOR_TIME if code == -signal.SIGXCPU else None


def _retrieved(answer: asyncio.Future[Answer]) -> None:
    if not answer.cancelled():
        answer.exception()
