"""An emulator of Azure's blob service for tests: Azurite, a program of Node.

`make test` installs it beside the jars, or else the first test that needs it; a skip says so where
there is no Node. It keeps everything in memory.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import itertools
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode

import pytest

from committer.real_world import RealWorld
from committer.service.process.child_process import ends_with_parent
from committer.storage.adls.adls_authorization import SharedKey
from committer.storage.adls.adls_location import AdlsPlaces
from committer.storage.adls.open_adls import AdlsOptions
from committer.storage.http.http_client import HttpClient, HttpLimits, HttpRequest
from tests.support.builders.jars import NotHereError
from tests.support.builders.programs import azurite
from tests.support.servers.free_port import free_port

# Azurite's own account and key, which its documentation publishes.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
CONTAINER = "frazil"
_SIGNED = "2020-12-06"
_POLL_S = 0.1
_READY_S_MAX = 120.0
# A timeout for tests of which the first has to install it.
TEST_S_MAX = 240


@dataclass(frozen=True, slots=True)
class Azurite:
    """A running emulator with a container."""

    url: str
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def address(self) -> str:
        return self.url.removeprefix("http://")

    @property
    def options(self) -> AdlsOptions:
        return AdlsOptions(AdlsPlaces(ACCOUNT, self.address, "http"), account_key=KEY)

    def new_root(self) -> str:
        """Return the location of an empty folder."""
        return f"abfss://{CONTAINER}@{ACCOUNT}.dfs.core.windows.net/{next(self._numbers)}"

    async def lease(self, location: str) -> None:
        """Put a lease without an end on a blob."""
        key = location.partition(".net/")[2]
        action = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"}
        await _send(self.url, f"{CONTAINER}/{key}?comp=lease", action)


def shared_access(*, ends_ms: int, permissions: str = "racwdl") -> str:
    """Return a shared access signature of the container, as a catalog vends it.

    Source: "Create a service SAS" of Azure's reference, for versions since 2020-12-06.
    """
    ends = datetime.fromtimestamp(ends_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    signed = (permissions, "", ends, f"/blob/{ACCOUNT}/{CONTAINER}", "", "", "", _SIGNED, "c")
    text = "\n".join((*signed, *[""] * 7))
    digest = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
    signature = base64.b64encode(digest).decode()
    return urlencode({"sv": _SIGNED, "se": ends, "sr": "c", "sp": permissions, "sig": signature})


@contextmanager
def running_azurite() -> Iterator[Azurite]:
    """Start an emulator. Skip the test, with the reason, where this machine has none."""
    program = _program()
    with tempfile.TemporaryDirectory(prefix="frazil-") as folder:
        process, url = _start(program, Path(folder))
        try:
            with ThreadPoolExecutor(1) as threads:
                threads.submit(asyncio.run, _make_container(url)).result()
            yield Azurite(url)
        finally:
            process.kill()
            process.wait()


def _program() -> list[str]:
    try:
        return azurite()
    except NotHereError as error:
        pytest.skip(f"no emulator of Azure here: {error}")


def _start(program: list[str], folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    port = free_port()
    command = [
        *(*program, "--blobHost", "127.0.0.1", "--blobPort", str(port)),
        *("--skipApiVersionCheck", "--disableTelemetry", "--silent", "--inMemoryPersistence"),
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(ends_with_parent(command), cwd=folder, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    if not _is_ready(process, url):
        raise RuntimeError(f"Azurite does not start: {(folder / 'log').read_text()[-2000:]}")
    return process, url


def _is_ready(process: subprocess.Popen[bytes], url: str) -> bool:
    """Return whether the emulator answers; False if it ended."""
    ends_s = time.monotonic() + _READY_S_MAX
    while process.poll() is None and time.monotonic() < ends_s:
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except urllib.error.HTTPError as error:
            error.close()
            return True  # it wants a signed request: it is there
        except OSError:
            time.sleep(_POLL_S)
    process.kill()
    process.wait()
    return False


async def _make_container(url: str) -> None:
    await _send(url, f"{CONTAINER}?restype=container", {})


async def _send(url: str, path: str, headers: dict[str, str]) -> None:
    """Send a PUT without a body, which must be answered by 201."""
    client = HttpClient(HttpLimits())
    headers = {"x-ms-version": "2023-11-03", **headers}
    request = HttpRequest("PUT", f"{url}/{ACCOUNT}/{path}", headers)
    try:
        answer = await client.send(await SharedKey(ACCOUNT, KEY, RealWorld()).sign(request))
        assert answer.status == 201, answer
    finally:
        await client.close()
