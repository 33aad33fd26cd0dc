"""Starting: waiting for a component that is away, and what is said of an end by an error."""

from __future__ import annotations

import asyncio

from committer.errors import CatalogUnavailableError, FrazilError, InvariantError, SettingsError
from committer.service.health import Health
from committer.service.run import first_error, until_answered
from tests.virtual_time import LoopWorld

VIRTUAL_TIME = True


class Component:
    """Does not answer the first `failures` times."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.asked = 0

    async def ask(self) -> str:
        self.asked += 1
        if self.asked <= self.failures:
            raise CatalogUnavailableError("away")
        return "here"


async def test_a_component_that_is_away_is_asked_again_until_it_answers() -> None:
    component, health = Component(failures=5), Health(LoopWorld())
    answer = await until_answered("catalog", component.ask, asyncio.Event(), health)
    assert (answer, component.asked, health.troubles) == ("here", 6, {})


async def test_waiting_is_a_trouble_and_ends_with_the_stop() -> None:
    component, health, stop = Component(failures=1_000_000), Health(LoopWorld()), asyncio.Event()
    asking = asyncio.ensure_future(until_answered("catalog", component.ask, stop, health))
    await asyncio.sleep(60)
    assert health.troubles == {"catalog": "away"}
    # With back-off: not hundreds of times a minute.
    assert component.asked < 60
    stop.set()
    async with asyncio.timeout(0.001):
        assert await asking is None


def test_the_error_of_a_setting_is_told_before_others() -> None:
    errors = [InvariantError("bug"), ExceptionGroup("some", [SettingsError("setting")])]
    group, _ = ExceptionGroup("all", errors).split(FrazilError)
    assert group is not None
    assert str(first_error(group)) == "setting"
