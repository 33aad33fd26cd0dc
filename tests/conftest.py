"""Servers that several folders of tests share: each is started for the first test that needs it.

Random examples are the same in every run, so that a run tells of the change and not of chance.
FRAZIL_TEST_CHANCE=1 draws others.

Nothing that was imported or collected is ever garbage: it is not looked at again and again.
"""

from __future__ import annotations

import gc
import os
import signal
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

from tests.support.served_files import check_served
from tests.support.servers.azurite import Azurite, running_azurite
from tests.support.servers.dynamodb_server import CREDENTIALS, DynamoDbServer, running_server
from tests.support.servers.gcs_server import GcsServer, running_gcs_server
from tests.support.servers.hive_releases import HIVE_2, HIVE_3
from tests.support.servers.hive_server import HiveServer, running_hive
from tests.support.servers.mariadb_server import MariaDbServer, running_mariadb
from tests.support.servers.moto_server import MotoServer, running_moto_server
from tests.support.servers.postgres_server import PostgresServer, running_postgres
from tests.support.servers.queue_servers import (
    KINDS,
    MemoryHarness,
    QueueHarness,
    RedisHarness,
    RunningServer,
    running_queue_server,
)
from tests.support.servers.rest_server import RestServer, running_rest_server
from tests.support.servers.s3_server import (
    S3Server,
    running_s3_server,
    running_versitygw,
)

# How long an example takes says more about the machine than about the code.
_UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("chance", _UNTIMED)
settings.register_profile("same", _UNTIMED, derandomize=True)
settings.load_profile("chance" if os.environ.get("FRAZIL_TEST_CHANCE") else "same")
gc.disable()
# Its tests share a Spark application.
SHARED = "tests/integration/changes/"
LIMIT_FACTOR = 5
# A shell starts a command in the background with SIGINT ignored, and every process of a test would
# inherit that: Ctrl-C is tested, too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


class GroupScheduling(LoadFileScheduling):  # type: ignore[misc]  # has no type information
    """Gives one worker the tests of a file, or of all files that share a Spark application."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(super()._split_scope(nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> GroupScheduling | None:
    return GroupScheduling(config, log) if config.getvalue("dist") == "loadfile" else None


def group_of(file: str) -> str:
    return SHARED if file.startswith(SHARED) else file


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort slow groups first, by the timeouts of their tests and a second for each test, so that no
    worker starts one at the end. A marker says what a test may take beside others on two cores; the
    limit is a multiple of it, as it is to end what hangs, not what is slow.
    """
    check_served(items)
    groups = {item: group_of(item.nodeid.partition("::")[0]) for item in items}
    longest_s: dict[str, float] = defaultdict(float)
    count = Counter(groups.values())
    for item, group in groups.items():
        if marker := item.get_closest_marker("timeout"):
            usual_s = float(marker.args[0])
            longest_s[group] = max(longest_s[group], usual_s)
            item.add_marker(pytest.mark.timeout(LIMIT_FACTOR * usual_s), append=False)
    items.sort(key=lambda item: -longest_s[groups[item]] - count[groups[item]])


def pytest_collection_finish() -> None:
    gc.freeze()
    # Tests make few reference cycles: a collection at each 700th object takes 5 % of the time.
    gc.set_threshold(20_000, 50, 100)
    gc.enable()


@pytest.fixture(scope="session")
def dynamodb_server() -> Iterator[DynamoDbServer]:
    with running_server() as server, pytest.MonkeyPatch.context() as patch:
        for name, value in CREDENTIALS.items():
            patch.setenv(name, value)
        yield server


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def mariadb_server() -> Iterator[MariaDbServer]:
    with running_mariadb() as server:
        yield server


@pytest.fixture(scope="session")
def moto_server() -> Iterator[MotoServer]:
    with running_moto_server() as server:
        yield server


@pytest.fixture(scope="session")
def hive_server(postgres_server: PostgresServer) -> Iterator[HiveServer]:
    with running_hive(postgres_server) as server:
        yield server


@pytest.fixture(scope="session")
def hive_2_server(postgres_server: PostgresServer) -> Iterator[HiveServer]:
    """Start a metastore that compares the expected parameter of a change, and has `get_table`."""
    with running_hive(postgres_server, HIVE_2) as server:
        yield server


@pytest.fixture(scope="session")
def hive_3_server(postgres_server: PostgresServer) -> Iterator[HiveServer]:
    """Start a metastore that ignores the expected parameter of a change, and has `get_table`."""
    with running_hive(postgres_server, HIVE_3) as server:
        yield server


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    with running_s3_server() as server:
        yield server


@pytest.fixture(scope="session")
def versitygw() -> Iterator[S3Server]:
    with running_versitygw() as server:
        yield server


@pytest.fixture(scope="session")
def gcs_server() -> Iterator[GcsServer]:
    with running_gcs_server() as server:
        yield server


@pytest.fixture(scope="session")
def azurite() -> Iterator[Azurite]:
    with running_azurite() as server:
        yield server


@pytest.fixture(scope="session")
def rest_server() -> Iterator[RestServer]:
    with running_rest_server() as server:
        yield server


@pytest.fixture(params=KINDS, scope="session")
def running(request: pytest.FixtureRequest) -> Iterator[RunningServer | None]:
    """Start a server of each kind of queue; none for the one in memory."""
    if request.param == "memory":
        yield None
        return
    with running_queue_server(request.param) as server:
        yield server


@pytest.fixture
async def harness(running: RunningServer | None) -> AsyncIterator[QueueHarness]:
    """Yield clients of a server of each kind, which is empty and has its settings."""
    harness: QueueHarness = MemoryHarness() if running is None else RedisHarness(running)
    await harness.start()
    await harness.flush()
    yield harness
    await harness.start()
    await harness.close()
