"""DynamoDB Local for tests: one server for a run of pytest, a table of its own for each test."""

from __future__ import annotations

import hashlib
import itertools
import os
import platform
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from committer.aws.client import AwsOptions
from committer.service.process.child_process import ends_with_parent
from tests.support.builders.fixtures import CACHE
from tests.support.builders.jars import NATIVE, NotHereError, dynamodb_local
from tests.support.servers.free_port import free_port
from workers.spark.java import find_java_home

REGION = "eu-central-1"
# Any will do; each pair of key and region would have tables of its own without `-sharedDb`.
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "frazil", "AWS_SECRET_ACCESS_KEY": "frazil"}
_MAIN = "software.amazon.dynamodb.services.local.main.ServerRunner"
_POLL_S = 0.05
_READY_S_MAX = 60.0
_STARTS_MAX = 3


@dataclass(frozen=True, slots=True)
class DynamoDbServer:
    """A running server."""

    url: str
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def options(self) -> AwsOptions:
        return AwsOptions(region=REGION, endpoint_url=self.url)

    def new_table_name(self) -> str:
        """Return a name that no table has yet."""
        return f"iceberg-{next(self._numbers)}"


@contextmanager
def running_server() -> Iterator[DynamoDbServer]:
    """Start a server, which keeps everything in memory; at the end it is gone.

    The test is skipped, saying why, where this machine cannot run it.
    """
    try:
        jars, shim = dynamodb_local(), loopback_shim("DynamoDB Local")
    except NotHereError as error:
        pytest.skip(str(error))
    with tempfile.TemporaryDirectory(prefix="frazil-") as folder:
        process, url = _start(jars, shim, Path(folder))
        try:
            yield DynamoDbServer(url)
        finally:
            process.kill()
            process.wait()


def _start(jars: Path, shim: Path, folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    """Start the server, on another port if another program takes the first before it does."""
    for _ in range(_STARTS_MAX):
        port = free_port()
        process = _spawn(jars, shim, folder, port)
        if wait_until_ready(process, f"http://127.0.0.1:{port}/"):
            return process, f"http://127.0.0.1:{port}"
    raise RuntimeError(f"DynamoDB Local does not start: {(folder / 'log').read_text()[-2000:]}")


def _spawn(jars: Path, shim: Path, folder: Path, port: int) -> subprocess.Popen[bytes]:
    command = [
        str(find_java_home(folder / "java") / "bin/java"),
        *("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"),
        *("-Djava.net.preferIPv4Stack=true", f"-Djava.library.path={jars}"),
        *("-cp", f"{jars}/*", _MAIN, "-port", str(port)),
        *("-inMemory", "-sharedDb", "-disableTelemetry"),
    ]
    environment = os.environ | {"LD_PRELOAD": str(shim)}
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            ends_with_parent(command), cwd=folder, env=environment, stdout=log, stderr=log
        )


def wait_until_ready(process: subprocess.Popen[bytes], url: str) -> bool:
    """Return whether the server answers; False if it ended."""
    ends_s = time.monotonic() + _READY_S_MAX
    while process.poll() is None and time.monotonic() < ends_s:
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except urllib.error.HTTPError as error:
            error.close()  # it wants a signed request: it is there
        except OSError:
            time.sleep(_POLL_S)
            continue
        return True
    process.kill()
    process.wait()
    return False


def loopback_shim(server: str) -> Path:
    """Return the library that binds a server to this machine, for which it has no option.

    Errors: `NotHereError` where it cannot be made.
    """
    source = NATIVE / "loopback.c"
    compiler = shutil.which("cc")
    if platform.system() != "Linux" or not compiler:
        raise NotHereError(
            f"{server} would listen to other machines: needs Linux and a C compiler"
            " (`apt-get install gcc libc6-dev`)"
        )
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    built = CACHE / f"loopback-{digest}.so"
    if not built.is_file():
        CACHE.mkdir(exist_ok=True)
        fresh = built.with_suffix(f".{os.getpid()}")
        command = [compiler, "-shared", "-fPIC", "-O2", "-o", str(fresh), str(source), "-ldl"]
        subprocess.run(command, check=True)
        fresh.replace(built)
    return built
