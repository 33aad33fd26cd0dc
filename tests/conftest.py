"""Servers that several folders of tests share: each is started for the first test that needs it.

Random examples are the same in every run, so that a run tells of the change and not of chance.
FRAZIL_TEST_CHANCE=1 draws others.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.dynamodb_server import CREDENTIALS, DynamoDbServer, running_server
from tests.s3_server import S3Server, running_s3_server

settings.register_profile("same", derandomize=True)
if not os.environ.get("FRAZIL_TEST_CHANCE"):
    settings.load_profile("same")


@pytest.fixture(scope="session")
def dynamodb_server() -> Iterator[DynamoDbServer]:
    with running_server() as server, pytest.MonkeyPatch.context() as patch:
        for name, value in CREDENTIALS.items():
            patch.setenv(name, value)
        yield server


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    with running_s3_server() as server:
        yield server
