"""`frazil serve` as a process of its own, in a home of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from tests.support.servers.free_port import free_port

REPOSITORY = Path(__file__).parents[3]
DEADLINE_S = 30.0
_POLL_S = 0.02


def wait_until(condition: Callable[[], bool], what: str, *, deadline_s: float = DEADLINE_S) -> None:
    """Poll: a process gives no notice when it is done."""
    end_s = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end_s, f"waited {deadline_s} s until {what}"
        time.sleep(_POLL_S)


class Serving:
    """One process; `log` is what it has written to stderr, if that is no descriptor of a test."""

    def __init__(
        self,
        home: Path,
        settings: Mapping[str, str] | None = None,
        *,
        options: Sequence[str] = (),
        port: int | None = None,
        stderr: int | None = None,
    ) -> None:
        self.port = port or free_port()
        self._log = home / "serve.log"
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-W", "error", "-m", "committer", "serve", *options],
                cwd=REPOSITORY,
                env={
                    **os.environ,
                    "FRAZIL_HOME": str(home),
                    "FRAZIL_QUEUE__URL": "private",
                    "FRAZIL_SERVICE__HTTP_PORT": str(self.port),
                    **(settings or {}),
                },
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log if stderr is None else stderr,
            )

    @property
    def log(self) -> str:
        return self._log.read_text()

    def is_ready(self) -> bool:
        assert self.process.poll() is None, self.log
        try:
            with urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except (URLError, OSError):
            return False

    def ask(self, path: str) -> bytes:
        """Return the body of an endpoint's answer."""
        with urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=DEADLINE_S) as answer:
            return bytes(answer.read())

    def wait_until_ready(self) -> None:
        wait_until(self.is_ready, "it is ready")

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal; the exit code."""
        self.process.send_signal(number)
        return self.process.wait(4 * DEADLINE_S)


@contextmanager
def serving(
    home: Path,
    settings: Mapping[str, str] | None = None,
    *,
    options: Sequence[str] = (),
    port: int | None = None,
    stderr: int | None = None,
) -> Iterator[Serving]:
    """Start a process, and kill it at the end, if it still runs."""
    running = Serving(home, settings, options=options, port=port, stderr=stderr)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.process.kill()
        running.process.wait()
