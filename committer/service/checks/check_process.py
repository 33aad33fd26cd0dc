"""One worker process, seen from the service: started on demand, asked, ended."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
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


class ProcessEndedError(Exception):
    """The process ended instead of answering: it was killed, or a library of it has crashed."""

    def __init__(self, code: int) -> None:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"code {code}"
        super().__init__(name)
        self.is_out_of_time = code == -signal.SIGXCPU


class CheckProcess:
    """A process and the thread that talks to it: pipes block. It ends when its pipe is closed, so
    it never outlives this process for longer than a job.
    """

    def __init__(self, program: str = PROGRAM) -> None:
        self._program = program
        self._thread = ThreadPoolExecutor(1, "check-process")
        self._process: subprocess.Popen[bytes] | None = None
        self._is_closed = False

    @property
    def pid(self) -> int | None:
        """The process id, if a process was started."""
        return self._process.pid if self._process else None

    async def ask(self, job: Job, buffers: Sequence[bytes]) -> Answer:
        """Errors: `ProcessEndedError`; the next call starts another process."""
        return await asyncio.wrap_future(self._thread.submit(self._ask, job, buffers))

    def _ask(self, job: Job, buffers: Sequence[bytes]) -> Answer:
        process = self._started()
        try:
            send(cast("BinaryIO", process.stdin), job, buffers)
            answer, _ = receive(cast("BinaryIO", process.stdout))
        except (OSError, EOFError):
            raise ProcessEndedError(self._end()) from None
        except BaseException:
            self._end()
            raise
        return cast("Answer", answer)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            speech = "json" if isinstance(sys.stderr, JsonStderr) else "text"
            command = [sys.executable, "-c", self._program, json.dumps(sys.path), speech]
            self._process = subprocess.Popen(  # noqa: S603  # our own interpreter
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
            )
            if self._is_closed:
                self._process.kill()
        return self._process

    def _end(self) -> int:
        """End the process and return its exit code."""
        process, self._process = self._process, None
        if process is None:
            return 0
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        process.kill()
        return process.wait()

    async def close(self) -> None:
        """End the process, even in the middle of a job."""
        self._is_closed = True
        if (process := self._process) is not None:
            process.kill()
        await asyncio.to_thread(self._thread.shutdown)
        self._end()
