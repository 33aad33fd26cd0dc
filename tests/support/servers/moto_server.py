"""Glue and S3 Tables for tests: one server for a run of pytest, an account for each test.

What it proves and what not: `checked_moto.py`.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import pytest

from committer.aws.client import AwsOptions
from committer.service.process.child_process import ends_with_parent
from tests.support.servers.dynamodb_server import REGION

_ROOT = Path(__file__).parent.parent.parent.parent


@dataclass(frozen=True, slots=True)
class MotoServer:
    """A running server."""

    url: str
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def new_account(self) -> AwsOptions:
        """Return the options of a client of an account that nobody has used."""
        return AwsOptions(
            region=REGION,
            endpoint_url=self.url,
            access_key_id=f"{next(self._numbers):012d}",
            secret_access_key="frazil",
        )


@contextmanager
def running_moto_server() -> Iterator[MotoServer]:
    """Start a server, which keeps everything in memory; at the end it is gone.

    The test is skipped, saying why, where moto is not installed.
    """
    if find_spec("moto") is None:
        pytest.skip("no server of Glue and S3 Tables here: `make install` installs moto")
    command = [sys.executable, "-m", "tests.support.servers.checked_moto"]
    process = subprocess.Popen(
        ends_with_parent(command), cwd=_ROOT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        port = process.stdout.readline().strip()
        assert port, "moto does not start: see above"
        yield MotoServer(f"http://127.0.0.1:{port}")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
