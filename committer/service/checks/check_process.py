"""One worker process, seen from the service: started on demand, asked, ended."""

from __future__ import annotations

import asyncio
import fcntl
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import BinaryIO, cast

from committer.service.checks.check_worker import Answer, Job, receive, send
from committer.service.telemetry.json_stderr import JsonStderr

PROGRAM = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from committer.service.telemetry import json_stderr
if sys.argv[2] == "json":
    json_stderr.speak_json()
from committer.service.checks.check_worker import main
main()
"""


# So that a usual job is there before the one in hand is done.
_PIPE_BYTES = 1024 * 1024


class ProcessEndedError(Exception):
    """The process ended instead of answering: it was killed, or a library of it has crashed."""

    def __init__(self, code: int) -> None:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"code {code}"
        super().__init__(name)
        self.is_out_of_time = code == -signal.SIGXCPU


class JobLostError(Exception):
    """The process ended in the job before: this one was not begun."""


class CheckProcess:
    """A process and the threads that talk to it, as pipes block: one sends jobs, one receives
    answers, so that the next job is there when the process is done with one. The process ends when
    its pipe is closed, so it never outlives this process for longer than a job.
    """

    def __init__(self, program: str = PROGRAM) -> None:
        self._program = program
        self._sender = ThreadPoolExecutor(1, "check-send")
        self._receiver = ThreadPoolExecutor(1, "check-receive")
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_closed = False

    @property
    def pid(self) -> int | None:
        """The process id, if a process was started."""
        return self._process.pid if self._process else None

    async def ask(self, job: Job, buffers: Sequence[bytes]) -> Answer:
        """Return the answer; jobs are done in the order of asking. Errors: `ProcessEndedError`,
        `JobLostError`; the next call starts another process.
        """
        sent = self._sender.submit(self._send, job, buffers)
        answer = asyncio.wrap_future(self._receiver.submit(self._receive, sent))
        # Of a caller that is canceled, too: what was sent is answered.
        answer.add_done_callback(_retrieved)
        return await asyncio.shield(answer)

    def _send(self, job: Job, buffers: Sequence[bytes]) -> subprocess.Popen[bytes]:
        process = self._started()
        # If it has ended, there is no answer either.
        with suppress(OSError):
            send(cast("BinaryIO", process.stdin), job, buffers)
        return process

    def _receive(self, sent: Future[subprocess.Popen[bytes]]) -> Answer:
        process = sent.result()
        # Only the end of an earlier job sets it.
        if process.returncode is not None:
            raise JobLostError
        try:
            answer, _ = receive(cast("BinaryIO", process.stdout))
        except (OSError, EOFError):
            raise ProcessEndedError(self._end(process)) from None
        except BaseException:
            self._end(process)
            raise
        return cast("Answer", answer)

    def _started(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._process is None:
                self._process = self._start()
            return self._process

    def _start(self) -> subprocess.Popen[bytes]:
        speech = "json" if isinstance(sys.stderr, JsonStderr) else "text"
        command = [sys.executable, "-c", self._program, json.dumps(sys.path), speech]
        process = subprocess.Popen(  # noqa: S603  # our own interpreter
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        if process.stdin is not None and hasattr(fcntl, "F_SETPIPE_SZ"):
            with suppress(OSError):
                fcntl.fcntl(process.stdin, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        if self._is_closed:
            process.kill()
        return process

    def _end(self, process: subprocess.Popen[bytes]) -> int:
        """End a process and return its exit code."""
        with self._lock:
            if self._process is process:
                self._process = None
        process.kill()
        code = process.wait()
        # Not while a job is being sent: another file may get the number of a closed pipe.
        self._sender.submit(_close, process)
        return code

    async def close(self) -> None:
        """End the process, even in the middle of a job."""
        self._is_closed = True
        if (process := self._process) is not None:
            process.kill()
        await asyncio.to_thread(self._receiver.shutdown)
        if (process := self._process) is not None:
            self._end(process)
        await asyncio.to_thread(self._sender.shutdown)


def _close(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


def _retrieved(answer: asyncio.Future[Answer]) -> None:
    if not answer.cancelled():
        answer.exception()
