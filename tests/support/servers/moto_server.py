"""Glue and S3 Tables for tests: one server for a run of pytest, an account for each test.

What it proves and what not: `checked_moto.py`.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from committer.aws.client import AwsOptions, close_client, open_client
from committer.service.process.child_process import ends_with_parent
from tests.support.servers.dynamodb_server import REGION

_ROOT = Path(__file__).parent.parent.parent.parent


# One of the three that moto knows S3 Tables in.
TABLE_BUCKETS_REGION = "us-east-1"


@dataclass(frozen=True, slots=True)
class TableBucket:
    """An empty table bucket, and the options of a client of its account."""

    arn: str
    options: AwsOptions


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

    async def new_table_bucket(self) -> TableBucket:
        """Make a table bucket in an account of its own."""
        options = replace(self.new_account(), region=TABLE_BUCKETS_REGION)
        client = await open_client("s3tables", options)
        answer = await client.create_table_bucket(name="lake")
        await close_client(client)
        return TableBucket(answer["arn"], options)


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
