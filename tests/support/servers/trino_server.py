"""Trino for tests, with several Iceberg catalogs, on tables in folders of this machine."""

from __future__ import annotations

import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from committer.service.process.child_process import ends_with_parent
from tests.support.builders.jars import NotHereError
from tests.support.builders.trino_files import MODULE, trino_java, trino_server
from tests.support.servers.trino_client import TrinoClient

_READY_S_MAX = 300.0
_POLL_S = 0.2
_STARTS_MAX = 3
_JVM = (
    *("-Xmx1G", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djdk.attach.allowAttachSelf=true"),
    *(MODULE, "--enable-native-access=ALL-UNNAMED", "-Dfile.encoding=UTF-8"),
)
# What tests need of every catalog beside its own properties.
_FOR_TESTS = {
    "iceberg.register-table-procedure.enabled": "true",
    "iceberg.expire-snapshots.min-retention": "0s",
}


@dataclass(frozen=True, slots=True)
class TrinoServer:
    """A running server, whose catalogs have the names that they were started with."""

    url: str
    log_file: Path

    def client(self, catalog: str) -> TrinoClient:
        return TrinoClient(self.url, catalog)


@contextmanager
def running_trino(catalogs: Mapping[str, Mapping[str, str]]) -> Iterator[TrinoServer]:
    """Start a server with these catalogs: by name, their properties as in a file of Trino's.

    At the end it is gone. The test is skipped, saying why, where this machine cannot run it.
    """
    try:
        java, home = trino_java(), trino_server()
    except NotHereError as error:
        pytest.skip(str(error))
    with tempfile.TemporaryDirectory(prefix="frazil-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        process, url = _start(java, home, folder, catalogs)
        try:
            yield TrinoServer(url, folder / "log")
        finally:
            process.kill()
            process.wait()


def _start(
    java: Path, home: Path, folder: Path, catalogs: Mapping[str, Mapping[str, str]]
) -> tuple[subprocess.Popen[bytes], str]:
    """Start the server, on another port if another program takes the first before it does."""
    for _ in range(_STARTS_MAX):
        with socket.create_server(("127.0.0.1", 0)) as probe:
            url = f"http://127.0.0.1:{probe.getsockname()[1]}"
        _configure(home, folder, url, catalogs)
        process = _spawn(java, home, folder)
        if _is_ready(process, TrinoClient(url)):
            return process, url
    raise RuntimeError(f"Trino does not start: {(folder / 'log').read_text()[-3000:]}")


def _configure(
    home: Path, folder: Path, url: str, catalogs: Mapping[str, Mapping[str, str]]
) -> None:
    (folder / "catalog").mkdir(exist_ok=True)
    for name, properties in catalogs.items():
        _write_properties(folder / f"catalog/{name}.properties", {**properties, **_FOR_TESTS})
    _write_properties(
        folder / "config.properties",
        {
            "node.environment": "test",
            "node.bind-ip": "127.0.0.1",
            "node.internal-address": "127.0.0.1",
            "coordinator": "true",
            "node-scheduler.include-coordinator": "true",
            "http-server.http.port": url.rpartition(":")[2],
            "discovery.uri": url,
            "catalog.config-dir": f"{folder}/catalog",
            "plugin.dir": f"{home}/plugin",
            "query.max-memory": "300MB",
            "query.max-memory-per-node": "300MB",
            "memory.heap-headroom-per-node": "200MB",
        },
    )


def _write_properties(file: Path, properties: Mapping[str, str]) -> None:
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))


def _spawn(java: Path, home: Path, folder: Path) -> subprocess.Popen[bytes]:
    command = [
        *(str(java), *_JVM, f"-Dconfig={folder}/config.properties"),
        *("-cp", f"{home}/lib/*", "io.trino.server.TrinoServer"),
    ]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(ends_with_parent(command), cwd=folder, stdout=log, stderr=log)


def _is_ready(process: subprocess.Popen[bytes], client: TrinoClient) -> bool:
    """Return whether the server takes statements; False if it ended."""
    ends_s = time.monotonic() + _READY_S_MAX
    while process.poll() is None and time.monotonic() < ends_s:
        if client.is_ready():
            return True
        time.sleep(_POLL_S)
    process.kill()
    process.wait()
    return False
