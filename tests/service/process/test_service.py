"""Starting: waiting for a component that is away, and what is said of an end by an error."""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from committer.errors import (
    AccessError,
    CatalogUnavailableError,
    FrazilError,
    InvariantError,
    SettingsError,
    StorageUnavailableError,
)
from committer.ports.pointer_swap import Swap, SwapAnswer
from committer.request.table_identifier import TableIdentifier
from committer.service.ingest.catalog_probe import AWAY_INTERVAL_S, INTERVAL_S
from committer.service.process.composition import RequestParts, Storages
from committer.service.process.service import CUT_OFF_S, Service, until_answered
from committer.service.process.startup import first_error
from committer.service.telemetry.health import Health
from committer.service.telemetry.metrics import Metrics
from committer.settings.service_settings import QueueSettings, Settings
from committer.storage.inbox.key_file import KeyFile
from tests.support.builders.request_builders import build_request
from tests.support.builders.table_builders import build_table
from tests.support.clock.virtual_time import LoopWorld
from tests.support.memory.memory_catalog import MemoryCatalog
from tests.support.memory.memory_storage import MemoryStorage
from tests.support.service.checks_here import ChecksHere
from tests.support.service.service_harness import INBOX, KEYS, WAREHOUSE

VIRTUAL_TIME = True


class Component:
    """Does not answer the first `failures` times."""

    def __init__(self, failures: int, error: FrazilError | None = None) -> None:
        self.failures = failures
        self.error = error or CatalogUnavailableError("away")
        self.asked = 0

    async def ask(self) -> str:
        self.asked += 1
        if self.asked <= self.failures:
            raise self.error
        return "here"


async def test_a_component_that_is_away_is_asked_again_until_it_answers() -> None:
    component, health = Component(failures=5), Health(LoopWorld())
    answer = await until_answered("catalog", component.ask, asyncio.Event(), health)
    assert (answer, component.asked, health.conditions) == ("here", 6, {})


async def test_a_storage_that_the_catalog_waits_for_is_reported_as_the_storage() -> None:
    health, stop = Health(LoopWorld()), asyncio.Event()
    component = Component(5, StorageUnavailableError("no bucket answers"))
    asking = asyncio.ensure_future(until_answered("catalog", component.ask, stop, health))
    await asyncio.sleep(0.1)
    assert health.conditions == {"storage": "no bucket answers"}
    assert await asking == "here"
    assert health.conditions == {}


async def test_waiting_is_a_condition_and_ends_with_the_stop() -> None:
    component, health, stop = Component(failures=1_000_000), Health(LoopWorld()), asyncio.Event()
    asking = asyncio.ensure_future(until_answered("catalog", component.ask, stop, health))
    await asyncio.sleep(60)
    assert health.conditions == {"catalog": "away"}
    # With back-off: not hundreds of times a minute.
    assert component.asked < 60
    stop.set()
    async with asyncio.timeout(0.001):
        assert await asking is None


async def test_a_question_without_an_answer_does_not_hold_up_the_stop() -> None:
    health, stop = Health(LoopWorld()), asyncio.Event()

    async def silent() -> str:
        await asyncio.sleep(3_600.0)
        return "late"

    asking = asyncio.ensure_future(until_answered("catalog", silent, stop, health))
    await asyncio.sleep(60)
    stop.set()
    async with asyncio.timeout(CUT_OFF_S + 0.001):
        assert await asking is None


async def test_a_question_that_is_answered_behind_the_stop_is_not_cut_off() -> None:
    health, stop = Health(LoopWorld()), asyncio.Event()
    ended: list[str] = []

    async def probe() -> None:
        await asyncio.sleep(2.0)
        ended.append("tidied up")

    asking = asyncio.ensure_future(until_answered("catalog", probe, stop, health))
    await asyncio.sleep(1.0)
    stop.set()
    await asking
    assert ended == ["tidied up"]


def test_the_error_of_a_setting_is_told_before_others() -> None:
    errors = [InvariantError("bug"), ExceptionGroup("some", [SettingsError("setting")])]
    group, _ = ExceptionGroup("all", errors).split(FrazilError)
    assert group is not None
    assert str(first_error(group)) == "setting"


class SlowCatalog(MemoryCatalog):
    """Its swaps take `swap_s`; `swaps` counts those that began."""

    swap_s = 0.0
    swaps = 0

    async def swap(self, swap: Swap) -> SwapAnswer:
        self.swaps += 1
        await asyncio.sleep(self.swap_s)
        return await super().swap(swap)


def memory_parts(home: Path, world: LoopWorld, storage: MemoryStorage) -> RequestParts:
    return RequestParts(
        settings=Settings(home=home, inbox=INBOX, queue=QueueSettings(consumer="committer-1")),
        world=world,
        storages=Storages(storage, storage),
    )


async def test_a_service_does_not_start_without_the_keys_that_it_is_told_of(tmp_path: Path) -> None:
    world = LoopWorld()
    storage = MemoryStorage(world=world)
    parts = memory_parts(tmp_path, world, storage)
    parts.key_file = KeyFile(storage, KEYS, world)
    service = Service(parts, Health(world), Metrics())
    with pytest.raises(ExceptionGroup) as caught:
        await service.run(MemoryCatalog(storage=storage), asyncio.Event(), ChecksHere())
    (error,) = caught.value.exceptions
    assert isinstance(error, SettingsError)
    assert "the file of keys does not exist" in str(error)
    assert service.health.phase == "starting"


class AwayCatalog(MemoryCatalog):
    """Raises `error` at every read of a pointer, while there is one."""

    error: FrazilError | None = None

    async def current_location(self, identifier: TableIdentifier) -> str:
        if self.error is not None:
            raise self.error
        return await super().current_location(identifier)


@pytest.mark.parametrize("error", [CatalogUnavailableError("away"), AccessError("forbidden")])
async def test_an_idle_committer_is_ready_exactly_while_its_catalog_answers(
    tmp_path: Path, error: FrazilError
) -> None:
    world = LoopWorld()
    storage = MemoryStorage(world=world)
    catalog = AwayCatalog(storage=storage)
    parts = memory_parts(tmp_path, world, storage)
    health, stop = Health(world), asyncio.Event()
    running = asyncio.ensure_future(
        Service(parts, health, Metrics()).run(catalog, stop, ChecksHere())
    )
    await asyncio.sleep(120.0)
    assert (health.is_ready, health.conditions) == (True, {})
    catalog.error = error
    await asyncio.sleep(INTERVAL_S + 1)
    assert (health.is_ready, health.conditions) == (False, {"catalog": str(error)})
    assert health.is_alive
    catalog.error = None
    await asyncio.sleep(AWAY_INTERVAL_S + 1)
    assert (health.is_ready, health.conditions) == (True, {})
    stop.set()
    await running


async def test_a_start_says_which_release_works_where_and_under_which_name(tmp_path: Path) -> None:
    world = LoopWorld()
    storage = MemoryStorage(world=world)
    parts = memory_parts(tmp_path, world, storage)
    stop = asyncio.Event()
    with capture_logs() as lines:
        running = asyncio.ensure_future(
            Service(parts, Health(world), Metrics()).run(
                MemoryCatalog(storage=storage), stop, ChecksHere()
            )
        )
        await asyncio.sleep(3.0)
        stop.set()
        await running
    (started,) = [line for line in lines if line["event"] == "service.started"]
    del started["log_level"]
    assert started == {
        "event": "service.started",
        "version": version("frazil"),
        "consumer": "committer-1",
        "http_port": 8181,
        "catalog": "frazil",
        "catalog_place": f"sqlite:///{tmp_path}/catalog.db",
        "inbox": INBOX,
    }


async def test_a_service_is_ready_after_its_probes_and_no_longer_while_it_drains(
    tmp_path: Path,
) -> None:
    world = LoopWorld()
    storage = MemoryStorage(world=world)
    catalog = SlowCatalog(storage=storage)
    table = build_table(warehouse=WAREHOUSE)
    await catalog.create_namespace(table.identifier.namespace)
    await catalog.create_table(table)
    parts = memory_parts(tmp_path, world, storage)
    health, stop = Health(world), asyncio.Event()
    assert (health.phase, health.is_ready) == ("starting", False)
    running = asyncio.ensure_future(
        Service(parts, health, Metrics()).run(catalog, stop, ChecksHere())
    )
    await asyncio.sleep(3.0)
    assert (health.phase, health.is_ready, health.is_alive) == ("running", True, True)
    catalog.swap_s, catalog.swaps = 10.0, 0
    await parts.inbox.put(build_request(table))
    await asyncio.sleep(3.0)
    stop.set()
    await asyncio.sleep(3.0)
    assert (catalog.swaps, running.done()) == (1, False)
    assert (health.phase, health.is_ready, health.is_alive) == ("draining", False, True)
    await running
    current = await catalog.load(table.identifier)
    assert len(current.metadata.snapshots) == 1
