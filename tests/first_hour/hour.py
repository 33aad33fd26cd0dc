"""Does the steps of a walk on this machine, and keeps what they print."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from fcntl import ioctl
from pathlib import Path

from frazil.spark import find_java_home
from tests.first_hour.blocks import ROOT, CodeBlock, code_blocks
from tests.first_hour.steps import (
    Interrupt,
    LeftOut,
    Output,
    Run,
    Save,
    Sql,
    Start,
    Type,
    Walk,
)
from tests.first_hour.transcript import kept, masked, settled
from tests.support.integration.processes import kill_session

COLUMNS = 80
# Where the page that readers find shows Spark's settings for Iceberg's own runtime.
READING, CONF_BLOCK = "docs/how-to/read-the-table.md", 3
_READY_S = 60.0
_AGAIN_S = 0.5
# `make first-hour OPTIONS=…` hands its variables on to each `make` below it; a user's has none.
_NOT_A_USERS = ("FRAZIL_", "PYTHON", "VIRTUAL_ENV", "COLUMNS", "MAKE", "MFLAGS", "OPTIONS", "PAGE")


class WrongTurn(AssertionError):
    """Something went another way than the walk says."""


@dataclass(frozen=True, slots=True)
class _Ended:
    exit_code: int
    output: str


@dataclass(slots=True)
class Hour:
    """One user with an empty home. `lines`: the transcript so far."""

    walk: Walk
    home: Path
    is_verbose: bool = False
    lines: list[str] = field(default_factory=list)
    _running: subprocess.Popen[bytes] | None = None

    # --- Steps -----------------------------------------------------------------------------------

    def do(self) -> list[str]:
        """Run all steps. Errors: `WrongTurn`, with the output."""
        for step in self.walk.steps:
            match step:
                case Run():
                    self._run(step)
                case Type():
                    self._type(step)
                case Start():
                    self._start(step)
                case Interrupt():
                    self._interrupt(step)
                case Save():
                    content = self._put(self._block(step.block).text, step.put)
                    (self.home / step.file).write_text(content)
                    self._note(step.title, [])
                case Sql():
                    self._sql(step)
                case LeftOut():
                    self._note(step.title, [])
        return self.lines

    def _run(self, step: Run) -> None:
        block = code_blocks(step.page or self.walk.page)[step.block - 1]
        text = self._put(step.before + block.text + step.after, step.put)
        is_python = (step.language or block.language) == "python"
        command = [sys.executable, "-c", text] if is_python else self._shell(text)
        ended = self._pipe(command, step.shown, step.in_clone, step.timeout_s)
        self._expect(step.title, ended, step.exit_code)
        self._note(step.title, self._settled(ended, step.keep_from, step.shown))

    def _sql(self, step: Sql) -> None:
        conf = self._put(code_blocks(READING)[CONF_BLOCK - 1].text, {"/home/me": str(self.home)})
        statements = self._put(self._block(step.block).text, step.put)
        command = [sys.executable, "-m", "tests.first_hour.iceberg_sql", conf, statements]
        ended = self._pipe(command, "stdout", in_clone=True, timeout_s=300.0)
        self._expect(step.title, ended, 0)
        self._note(step.title, self._settled(ended, "", "stdout"))

    def _type(self, step: Type) -> None:
        end_s = time.monotonic() + step.timeout_s
        while True:
            ended = self._typed(step)
            if step.until in ended.output:
                break
            if time.monotonic() > end_s:
                raise WrongTurn(f"`{step.command}` never printed `{step.until}`:\n{ended.output}")
            time.sleep(_AGAIN_S)
        self._expect(f"`{step.command}`", ended, step.exit_code)
        printed = self._settled(ended, step.keep_from, step.shown)
        self._note(step.title, masked(printed, step.varying))
        if step.exit_code:
            self.lines.append(f"exit code {step.exit_code}")

    def _typed(self, step: Type) -> _Ended:
        command = self._shell(self._put(step.command, {}))
        if step.terminal:
            return self._terminal(command, step.timeout_s)
        return self._pipe(command, step.shown, step.in_clone, step.timeout_s)

    # --- Processes -------------------------------------------------------------------------------

    def _start(self, step: Start) -> None:
        text = self._block(step.block).text if step.block else step.command
        log = self.home / "started.log"
        with log.open("wb") as output:
            self._running = subprocess.Popen(
                # Ctrl-C ends what the shell runs, not the shell: a person's goes on as well.
                self._shell(f"trap : INT\n{self._put(text, step.put)}"),
                cwd=ROOT if step.in_clone else self.home,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        end_s = time.monotonic() + _READY_S
        while step.ready not in log.read_text():
            if self._running.poll() is not None or time.monotonic() > end_s:
                raise WrongTurn(f"`{step.ready}` was not printed:\n{log.read_text()}")
            time.sleep(_AGAIN_S / 5)
        printed = settled(log.read_text(), self._places())
        # Then it goes on by itself, at its own pace.
        until_ready = len(printed) - len(kept(printed, step.ready)) + 1
        self._note(step.title, printed[:until_ready])

    def _interrupt(self, step: Interrupt) -> None:
        assert self._running is not None
        # As a terminal does it: the whole foreground group gets the signal.
        os.killpg(self._running.pid, signal.SIGINT)
        found = self._running.wait(_READY_S)
        self._running = None
        log = (self.home / "started.log").read_text()
        if found != step.exit_code or "Traceback" in log:
            raise WrongTurn(f"Ctrl-C: exit code {found}, expected {step.exit_code}:\n{log[-3000:]}")
        self._note(step.title, [])

    def stop(self) -> None:
        """Stop everything that still runs."""
        if self._running is not None:
            kill_session(self._running)

    def _shell(self, text: str) -> list[str]:
        return ["sh", "-ec", text]

    def _pipe(self, command: list[str], shown: Output, in_clone: bool, timeout_s: float) -> _Ended:
        ended = subprocess.run(
            command,
            cwd=ROOT if in_clone else self.home,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if shown == "all" else subprocess.PIPE,
            timeout=timeout_s,
            check=False,
        )
        errors = "" if shown == "all" or ended.returncode == 0 else ended.stderr.decode()
        return _Ended(ended.returncode, ended.stdout.decode() + errors)

    def _terminal(self, command: list[str], timeout_s: float) -> _Ended:
        """Run the command on a terminal of 80 columns, for which programs print as for a person."""
        ours, theirs = pty.openpty()
        ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
        with subprocess.Popen(
            command,
            cwd=self.home,
            env=self._environment() | {"TERM": "xterm-256color"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        ) as process:
            os.close(theirs)
            output = b"".join(_chunks(ours))
            os.close(ours)
            return _Ended(process.wait(timeout_s), output.decode())

    def _environment(self) -> dict[str, str]:
        """Return a user's: without variables of Frazil or `make`, with what was installed."""
        inherited = {
            key: value for key, value in os.environ.items() if not key.startswith(_NOT_A_USERS)
        }
        search_path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        usual = {
            "HOME": str(self.home),
            "PATH": search_path,
            "NO_COLOR": "1",
            "PYTHONPATH": str(ROOT),
            "JAVA_HOME": str(find_java_home(self.home / ".java")),
        }
        return inherited | usual | dict(self.walk.variables)

    # --- Words -----------------------------------------------------------------------------------

    def _block(self, number: int) -> CodeBlock:
        return code_blocks(self.walk.page)[number - 1]

    def _put(self, text: str, put: Mapping[str, str]) -> str:
        for theirs, ours in put.items():
            if theirs not in text:
                raise WrongTurn(f"{self.walk.page}: no `{theirs}` in\n{text}")
            text = text.replace(theirs, ours)
        return text.replace("{home}", str(self.home))

    def _expect(self, what: str, ended: _Ended, exit_code: int) -> None:
        if ended.exit_code != exit_code:
            raise WrongTurn(
                f"{self.walk.page}: {what}: exit code {ended.exit_code}, expected {exit_code}:\n"
                f"{ended.output[-4000:]}"
            )
        if "Traceback (most recent call last)" in ended.output:
            raise WrongTurn(f"{self.walk.page}: {what} printed a traceback:\n{ended.output}")

    def _places(self) -> dict[str, str]:
        return {str(self.home): "~", str(ROOT): "<clone>"}

    def _settled(self, ended: _Ended, keep_from: str, shown: Output) -> list[str]:
        printed = settled(ended.output, self._places())
        if keep_from:
            printed = kept(printed, keep_from)
        return [] if shown == "none" else printed

    def _note(self, title: str, printed: list[str]) -> None:
        if self.is_verbose:
            print(f"    {title}", flush=True)
        self.lines += ["", f"## {title}", *(f"   {line}".rstrip() for line in printed)]


def _chunks(descriptor: int) -> Iterator[bytes]:
    """Yield the output on a terminal until its program has ended."""
    while True:
        try:
            chunk = os.read(descriptor, 65536)
        except OSError:  # Linux: the other side is closed
            return
        if not chunk:
            return
        yield chunk


@contextmanager
def an_hour(walk: Walk, *, is_verbose: bool = False) -> Iterator[Hour]:
    """Yield a home that is deleted afterwards, with everything that was started in it."""
    home = Path(tempfile.mkdtemp(prefix="frazil-first-hour-"))
    hour = Hour(walk, home, is_verbose)
    try:
        yield hour
    finally:
        hour.stop()
        shutil.rmtree(home)
