"""Hive metastores on PostgreSQL for tests: one of a release for a run of pytest, emptied for each
test.

Derby, their embedded database, cannot compare an expected parameter, so it would prove nothing.
"""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from committer.service.process.child_process import ends_with_parent
from tests.support.builders.jars import NotHereError
from tests.support.servers.dynamodb_server import loopback_shim
from tests.support.servers.free_port import free_port
from tests.support.servers.hive_releases import HIVE_4, HiveRelease
from tests.support.servers.postgres_server import USER, PostgresServer
from workers.spark.java import find_java_home

_MAIN = "org.apache.hadoop.hive.metastore.HiveMetaStore"
_OPENED = ("java.net", "java.lang", "java.util", "java.util.concurrent")
_POLL_S = 0.1
_READY_S_MAX = 120.0
_STARTS_MAX = 3


@dataclass(frozen=True, slots=True)
class _Program:
    """A program to run. `shim`: a library that is loaded into it first, if any."""

    folder: Path
    class_path: tuple[str, ...]
    java: Path
    shim: Path | None

    def spawn(self, port: int) -> subprocess.Popen[bytes]:
        folder = self.folder
        opened = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED]
        fast = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx400m")
        paths = ":".join((f"{folder}/conf", *self.class_path))
        local = "-Djava.net.preferIPv4Stack=true"
        main = (_MAIN, "-p", str(port))
        command = ends_with_parent([str(self.java), *opened, *fast, local, "-cp", paths, *main])
        environment = os.environ | {"METASTORE_HOME": str(folder), "HADOOP_USER_NAME": "hive"}
        if self.shim:
            environment["LD_PRELOAD"] = str(self.shim)
        with (folder / "log").open("ab") as log:
            return subprocess.Popen(
                command, process_group=0, cwd=folder, env=environment, stdout=log, stderr=log
            )

    def last_words(self) -> str:
        return f"the Hive metastore does not start: {(self.folder / 'log').read_text()[-3000:]}"


@dataclass(slots=True)
class HiveServer:
    """A running metastore."""

    program: _Program
    port: int
    process: subprocess.Popen[bytes]

    @property
    def uri(self) -> str:
        return f"thrift://127.0.0.1:{self.port}"

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self.port

    @property
    def warehouse(self) -> str:
        """A folder where the metastore makes those of databases and tables."""
        return f"file://{self.program.folder}/warehouse"

    def kill(self) -> None:
        """End the server at once."""
        self.process.kill()
        self.process.wait()

    def start(self) -> None:
        """Start it again on the same port and database."""
        self.process = self.program.spawn(self.port)
        if not _is_ready(self.process, self.port):
            raise RuntimeError(self.program.last_words())


@contextmanager
def running_hive(postgres: PostgresServer, release: HiveRelease = HIVE_4) -> Iterator[HiveServer]:
    """Start a metastore; at the end it is gone.

    The test is skipped, saying why, where this machine cannot run it.
    """
    try:
        class_path = release.class_path()
        shim = None if release.binds else loopback_shim(f"Hive metastore {release.name}")
    except NotHereError as error:
        pytest.skip(str(error))
    with tempfile.TemporaryDirectory(prefix="frazil-") as name:
        folder = Path(name)
        database = postgres.new_database()
        postgres.execute(database, release.schema())
        _configure(folder, release, f"127.0.0.1:{postgres.port}/{database}")
        java = find_java_home(folder / "java") / "bin/java"
        server = _start(_Program(folder, class_path, java, shim))
        try:
            yield server
        finally:
            server.kill()


def _configure(folder: Path, release: HiveRelease, database: str) -> None:
    values = {
        "javax.jdo.option.ConnectionURL": f"jdbc:postgresql://{database}",
        "javax.jdo.option.ConnectionDriverName": "org.postgresql.Driver",
        "javax.jdo.option.ConnectionUserName": USER,
        "javax.jdo.option.ConnectionPassword": USER,
        **release.settings(folder),
    }
    rows = "".join(
        f"<property><name>{name}</name><value>{escape(value)}</value></property>\n"
        for name, value in values.items()
    )
    (folder / "conf").mkdir()
    (folder / "conf" / release.site).write_text(f"<configuration>{rows}</configuration>")


def _start(program: _Program) -> HiveServer:
    """Start the server, on another port if another program takes the first before it does."""
    for _ in range(_STARTS_MAX):
        port = free_port()
        process = program.spawn(port)
        if _is_ready(process, port):
            return HiveServer(program, port, process)
    raise RuntimeError(program.last_words())


def _is_ready(process: subprocess.Popen[bytes], port: int) -> bool:
    """Return whether the server takes connections; False if it ended."""
    ends_s = time.monotonic() + _READY_S_MAX
    while process.poll() is None and time.monotonic() < ends_s:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
        except OSError:
            time.sleep(_POLL_S)
        else:
            return True
    process.kill()
    process.wait()
    return False
