"""Servers that several folders of tests share: each is started for the first test that needs it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.dynamodb_server import CREDENTIALS, DynamoDbServer, running_server


@pytest.fixture(scope="session")
def dynamodb_server() -> Iterator[DynamoDbServer]:
    with running_server() as server, pytest.MonkeyPatch.context() as patch:
        for name, value in CREDENTIALS.items():
            patch.setenv(name, value)
        yield server
