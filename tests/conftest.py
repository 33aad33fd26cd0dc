"""Servers that several folders of tests share: each is started for the first test that needs it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.dynamodb_server import CREDENTIALS, DynamoDbServer, running_server
from tests.s3_server import S3Server, running_s3_server


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
