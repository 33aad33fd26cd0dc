"""Programs that are measured: children that answer one line of JSON with another.

Both halves are here: `Child` asks, `answer_lines` is what the child runs.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

Message = dict[str, Any]
Handlers = Mapping[str, Callable[..., Awaitable[Message]]]

_END_S_MAX = 60.0


class StoppedError(Exception):
    """The child did not answer in time and was ended, or ended by itself."""


class Child:
    """A program in a session of its own; `close` ends it with all that it started."""

    def __init__(
        self, name: str, command: Sequence[str], *, log: Path, environment: Mapping[str, str]
    ) -> None:
        self.name = name
        self._log = log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                list(command),
                env=dict(environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
                bufsize=0,
            )
        self._received = b""

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def tell(self, do: str, **arguments: object) -> None:
        """Send a command; `hear` waits for its answer."""
        assert self._process.stdin
        try:
            self._process.stdin.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
        except BrokenPipeError:
            raise StoppedError(self._how_it_ended()) from None

    def hear(self, timeout_s: float) -> Message:
        """Return the next answer. Errors: `StoppedError`, after which the child has ended."""
        end_s = time.monotonic() + timeout_s
        while b"\n" not in self._received:
            self._receive(end_s - time.monotonic())
        line, _, self._received = self._received.partition(b"\n")
        answer: Message = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"{self.name}: {answer['error']}")
        return answer

    def ask(self, do: str, *, timeout_s: float = 120.0, **arguments: object) -> Message:
        self.tell(do, **arguments)
        return self.hear(timeout_s)

    def _receive(self, left_s: float) -> None:
        assert self._process.stdout
        ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, left_s))
        if not ready:
            self.close()
            raise StoppedError(f"{self.name} did not answer in time")
        received = os.read(self._process.stdout.fileno(), 1 << 20)
        if not received:
            raise StoppedError(self._how_it_ended())
        self._received += received

    def _how_it_ended(self) -> str:
        self.close()
        last = self._log.read_text(errors="replace")[-2_000:]
        return f"{self.name} has ended with code {self._process.returncode}: {last}"

    def close(self) -> None:
        """End the child's whole process group."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(_END_S_MAX)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


async def answer_lines(handlers: Handlers) -> None:
    """Answer commands until there are no more. An exception of a handler is its answer."""
    # Output of libraries must not get between the answers.
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    while line := await asyncio.to_thread(sys.stdin.buffer.readline):
        command = json.loads(line)
        do = command.pop("do")
        try:
            answer = await handlers[do](**command)
        except Exception as error:  # noqa: BLE001  # the other side raises it
            answer = {"error": f"{type(error).__name__}: {error}"[:2_000]}
        answers.write(json.dumps(answer).encode() + b"\n")
