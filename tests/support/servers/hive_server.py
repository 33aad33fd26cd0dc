"""A Hive metastore on PostgreSQL for tests: one for a run of pytest, emptied for each test.

Derby, its embedded database, cannot compare an expected parameter, so it would prove nothing.
"""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from committer.service.process.child_process import ends_with_parent
from tests.support.builders.jars import NotHereError, hive_metastore
from tests.support.servers.postgres_server import USER, PostgresServer
from workers.java import find_java_home

_PACKAGE = "org.apache.hadoop.hive.metastore"
_SCHEMA = "home/scripts/metastore/upgrade/postgres/hive-schema-4.0.0.postgres.sql"
_OPENED = ("java.net", "java.lang", "java.util", "java.util.concurrent")
_POLL_S = 0.1
_READY_S_MAX = 120.0
_STARTS_MAX = 3


@dataclass(slots=True)
class HiveServer:
    """A running metastore."""

    folder: Path
    jars: Path
    java: Path
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
        return f"file://{self.folder}/warehouse"

    def kill(self) -> None:
        """End the server at once."""
        self.process.kill()
        self.process.wait()

    def start(self) -> None:
        """Start it again on the same port and database."""
        self.process = _spawn(self.java, self.jars, self.folder, self.port)
        if not _is_ready(self.process, self.port):
            raise RuntimeError(_last_words(self.folder))


@contextmanager
def running_hive(postgres: PostgresServer) -> Iterator[HiveServer]:
    """Start a metastore; at the end it is gone.

    The test is skipped, saying why, where this machine cannot run it.
    """
    try:
        jars = hive_metastore()
    except NotHereError as error:
        pytest.skip(str(error))
    with tempfile.TemporaryDirectory(prefix="frazil-") as name:
        folder = Path(name)
        database = postgres.new_database()
        postgres.execute(database, (jars / _SCHEMA).read_text())
        _configure(folder, postgres.port, database)
        java = find_java_home(folder / "java") / "bin/java"
        server = _start(java, jars, folder)
        try:
            yield server
        finally:
            server.kill()


def _configure(folder: Path, port: int, database: str) -> None:
    values = {
        "javax.jdo.option.ConnectionURL": f"jdbc:postgresql://127.0.0.1:{port}/{database}",
        "javax.jdo.option.ConnectionDriverName": "org.postgresql.Driver",
        "javax.jdo.option.ConnectionUserName": USER,
        "javax.jdo.option.ConnectionPassword": USER,
        "metastore.warehouse.dir": f"file://{folder}/managed",
        "metastore.warehouse.external.dir": f"file://{folder}/warehouse",
        "metastore.thrift.bind.host": "127.0.0.1",
        "metastore.expression.proxy": f"{_PACKAGE}.DefaultPartitionExpressionProxy",
        "metastore.housekeeping.threads.on": "false",
        "metastore.task.threads.always": f"{_PACKAGE}.events.EventCleanerTask",
        "metastore.txn.store.impl": f"{_PACKAGE}.txn.CompactionTxnHandler",
        # The locks of a killed holder expire within a test.
        "metastore.txn.timeout": "5s",
    }
    rows = "".join(
        f"<property><name>{name}</name><value>{escape(value)}</value></property>\n"
        for name, value in values.items()
    )
    (folder / "conf").mkdir()
    (folder / "conf/metastore-site.xml").write_text(f"<configuration>{rows}</configuration>")


def _start(java: Path, jars: Path, folder: Path) -> HiveServer:
    """Start the server, on another port if another program takes the first before it does."""
    for _ in range(_STARTS_MAX):
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port: int = probe.getsockname()[1]
        process = _spawn(java, jars, folder, port)
        if _is_ready(process, port):
            return HiveServer(folder, jars, java, port, process)
    raise RuntimeError(_last_words(folder))


def _spawn(java: Path, jars: Path, folder: Path, port: int) -> subprocess.Popen[bytes]:
    command = _command(java, jars, folder, port)
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            ends_with_parent(command), cwd=folder, env=_environment(folder), stdout=log, stderr=log
        )


def _command(java: Path, jars: Path, folder: Path, port: int) -> Sequence[str]:
    opened = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED]
    fast = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx400m")
    paths = f"{folder}/conf:{jars}/*:{jars}/home/lib/*"
    local = "-Djava.net.preferIPv4Stack=true"
    main = f"{_PACKAGE}.HiveMetaStore"
    return [str(java), *opened, *fast, local, "-cp", paths, main, "-p", str(port)]


def _environment(folder: Path) -> dict[str, str]:
    return os.environ | {"METASTORE_HOME": str(folder), "HADOOP_USER_NAME": "hive"}


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


def _last_words(folder: Path) -> str:
    return f"the Hive metastore does not start: {(folder / 'log').read_text()[-3000:]}"
