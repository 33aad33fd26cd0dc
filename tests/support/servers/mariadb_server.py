"""MariaDB for tests: one server for a run of pytest, a database of its own for each test."""

from __future__ import annotations

import getpass
import itertools
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pymysql
import pytest

from committer.service.process.child_process import ends_with_parent
from tests.support.builders.jars import NotHereError, mariadb
from tests.support.servers.free_port import free_port

USER = "frazil"
_READY_S_MAX = 60.0
_STARTS_MAX = 3
_SYSTEM_TABLES = (
    "mysql_system_tables.sql",
    "mysql_performance_tables.sql",
    "mysql_system_tables_data.sql",
)
_ALL_RIGHTS = (
    "INSERT INTO global_priv VALUES ('%', 'frazil', JSON_OBJECT('access', 18446744073709551615,"
    " 'plugin', 'mysql_native_password', 'authentication_string', ''));"
)


@dataclass(slots=True)
class MariaDbServer:
    """A running server. Its superuser is `frazil`, without a password."""

    home: Path
    folder: Path
    port: int
    process: subprocess.Popen[bytes]
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self.port

    def uri(self, database: str, *, port: int | None = None, user: str = USER) -> str:
        return f"mariadb://{user}@127.0.0.1:{port or self.port}/{database}"

    def new_database(self) -> str:
        """Make an empty database, in which names are not told apart by default; return its name."""
        name = f"catalog_{next(self._numbers)}"
        self.execute("", f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
        return name

    def execute(self, database: str, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements as the superuser; return the last one's rows."""
        host, port = self.address
        with (
            closing(pymysql.connect(host=host, port=port, user=USER, database=database)) as one,
            closing(one.cursor()) as cursor,
        ):
            for statement in statements:
                cursor.execute(statement)
            one.commit()
            return list(cursor.fetchall())

    def kill(self) -> None:
        """End the server at once, as a power cut does."""
        self.process.kill()
        self.process.wait()

    def start(self, *more: str) -> None:
        """Start it again in the same folder on the same port, with more settings `name=value`."""
        self.process = _spawn(self.home, self.folder, self.port, *more)
        _wait_until_ready(self.process, self.port, self.folder)


@contextmanager
def running_mariadb() -> Iterator[MariaDbServer]:
    """Start a server; at the end it is gone.

    The test is skipped, saying why, where this machine cannot run it.
    """
    try:
        home = mariadb()
    except NotHereError as error:
        pytest.skip(str(error))
    with tempfile.TemporaryDirectory(prefix="frazil-") as name:
        folder = Path(name)
        _install(home, folder)
        server = _start(home, folder)
        try:
            yield server
        finally:
            server.kill()


def _command(home: Path, folder: Path, *options: str) -> list[str]:
    return [
        *(str(home / "bin/mariadbd"), "--no-defaults", f"--user={getpass.getuser()}"),
        *(f"--basedir={home}", f"--datadir={folder}/data", f"--lc-messages-dir={home}/share"),
        *options,
    ]


def _install(home: Path, folder: Path) -> None:
    """Make the tables that the server itself needs, and the superuser."""
    (folder / "data").mkdir()
    texts = [(home / "share" / name).read_text() for name in _SYSTEM_TABLES]
    script = "\n".join(["CREATE DATABASE mysql;", "USE mysql;", *texts, _ALL_RIGHTS, ""])
    command = _command(home, folder, "--bootstrap", "--log-warnings=0")
    ended = subprocess.run(command, input=script, capture_output=True, text=True)
    if ended.returncode:
        raise RuntimeError(f"MariaDB cannot be installed: {ended.stderr[-2000:]}")


def _start(home: Path, folder: Path) -> MariaDbServer:
    """Start the server, on another port if another program takes the first before it does."""
    for _ in range(_STARTS_MAX):
        port = free_port()
        process = _spawn(home, folder, port)
        try:
            _wait_until_ready(process, port, folder)
        except ChildProcessError:
            continue
        return MariaDbServer(home, folder, port, process)
    raise RuntimeError(f"MariaDB does not start: {(folder / 'log').read_text()[-2000:]}")


def _spawn(home: Path, folder: Path, port: int, *more: str) -> subprocess.Popen[bytes]:
    address = ("--bind-address=127.0.0.1", f"--port={port}", f"--socket={folder}/socket")
    small = ("--innodb-buffer-pool-size=32M", "--innodb-log-file-size=8M")
    command = _command(home, folder, *address, *small, *(f"--{one}" for one in more))
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(ends_with_parent(command), stdout=log, stderr=log)


def _wait_until_ready(process: subprocess.Popen[bytes], port: int, folder: Path) -> None:
    """Return when the server takes connections. Errors: `ChildProcessError` if it ended."""
    for _ in range(int(_READY_S_MAX / 0.05)):
        try:
            pymysql.connect(host="127.0.0.1", port=port, user=USER).close()
        except pymysql.MySQLError:
            try:
                process.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
            raise ChildProcessError((folder / "log").read_text()[-2000:]) from None
        return
    raise TimeoutError(f"MariaDB is not ready: {(folder / 'log').read_text()[-2000:]}")
