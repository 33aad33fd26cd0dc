"""Iceberg's own REST catalog for tests (its fixture 1.11), on a folder and an empty database.

It has no authentication, vends nothing, and serves one commit of one table correctly. What no
server here shows is the fake's (`fake_rest.py`).
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from committer.service.process.child_process import ends_with_parent
from tests.support.builders.jars import NotHereError, rest_fixture
from tests.support.servers.dynamodb_server import loopback_shim, wait_until_ready
from tests.support.servers.free_port import free_port
from workers.spark.java import find_java_home

_MAIN = "org.apache.iceberg.rest.RESTCatalogServer"
_STARTS_MAX = 3


@dataclass(slots=True)
class RestServer:
    """A running server; `warehouse` is the folder that it writes tables to."""

    url: str
    warehouse: str
    process: subprocess.Popen[bytes]
    spawn: Callable[[], subprocess.Popen[bytes]]

    def kill(self) -> None:
        """End the server at once."""
        self.process.kill()
        self.process.wait()

    def start(self) -> None:
        """Start it again on the same port and database."""
        self.process = self.spawn()
        if not wait_until_ready(self.process, f"{self.url}/v1/config"):
            raise RuntimeError("the REST catalog does not start again")


@contextmanager
def running_rest_server() -> Iterator[RestServer]:
    """Start a server with an empty catalog; at the end it is gone, with all that it wrote.

    The test is skipped, saying why, where this machine cannot run it.
    """
    try:
        jars, shim = rest_fixture(), loopback_shim("Iceberg's REST catalog for tests")
    except NotHereError as error:
        pytest.skip(str(error))
    with tempfile.TemporaryDirectory(prefix="frazil-") as folder:
        server = _start(jars, shim, Path(folder))
        try:
            yield server
        finally:
            server.kill()


def _warehouse(folder: Path) -> str:
    return f"file://{folder}/warehouse"


def _start(jars: Path, shim: Path, folder: Path) -> RestServer:
    """Start the server, on another port if another program takes the first before it does."""
    for _ in range(_STARTS_MAX):
        port = free_port()
        spawn = partial(_spawn, jars, shim, folder, port)
        server = RestServer(f"http://127.0.0.1:{port}", _warehouse(folder), spawn(), spawn)
        if wait_until_ready(server.process, f"{server.url}/v1/config"):
            return server
    raise RuntimeError(f"the REST catalog does not start: {(folder / 'log').read_text()[-2000:]}")


def _spawn(jars: Path, shim: Path, folder: Path, port: int) -> subprocess.Popen[bytes]:
    command = [
        str(find_java_home(folder / "java") / "bin/java"),
        *("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx300m"),
        "-Djava.net.preferIPv4Stack=true",
        *("-cp", f"{jars}/*", _MAIN),
    ]
    environment = os.environ | {
        "LD_PRELOAD": str(shim),
        "CATALOG_REST_PORT": str(port),
        "CATALOG_CATALOG__IMPL": "org.apache.iceberg.jdbc.JdbcCatalog",
        "CATALOG_URI": f"jdbc:sqlite:{folder}/catalog.db",
        "CATALOG_WAREHOUSE": _warehouse(folder),
        "CATALOG_IO__IMPL": "org.apache.iceberg.hadoop.HadoopFileIO",
    }
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            ends_with_parent(command),
            process_group=0,
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=log,
        )
