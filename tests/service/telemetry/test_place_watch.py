"""The watch of the places: what is silence, and when it is said."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from structlog.testing import capture_logs

from committer.errors import (
    AccessError,
    CatalogUnavailableError,
    FrazilError,
    NotFoundError,
    StorageUnavailableError,
)
from committer.service.telemetry.health import Health
from committer.service.telemetry.place_watch import GIVE_UP_S, PlaceWatch
from tests.support.clock.virtual_time import LoopWorld

VIRTUAL_TIME = True
SAID_S_MAX = 10.0
CONDITION = "storage answers"


class Watched:
    """A watch of one place. `answer`: what the question meets now."""

    def __init__(self) -> None:
        self.world = LoopWorld()
        self.health = Health(self.world)
        self.watch = PlaceWatch(self.world, self.health)
        self.calls = self.watch.calls("storage")
        self.watch.ask_by("storage", self._ask)
        self.answer: Callable[[], Awaitable[object]] = answers
        self.asked = 0
        self.running = asyncio.ensure_future(self.watch.run())

    async def _ask(self) -> object:
        self.asked += 1
        return await self.answer()

    def begin(self) -> int:
        return self.calls.begin(self.world.monotonic_s(), "memory://a")

    def end(self, number: int, error: BaseException | None = None) -> None:
        self.calls.end(number, error, self.world.monotonic_s())

    def is_said(self) -> bool:
        return CONDITION in self.health.conditions


async def answers() -> None:
    """Answer at once."""


async def hangs() -> None:
    await asyncio.sleep(3_600.0)


def raises(error: FrazilError) -> Callable[[], Awaitable[object]]:
    async def ask() -> None:
        raise error

    return ask


@pytest.fixture
async def watched() -> AsyncIterator[Watched]:
    watched = Watched()
    yield watched
    watched.running.cancel()
    await asyncio.gather(watched.running, return_exceptions=True)


@pytest.mark.parametrize(
    "answer", [hangs, raises(StorageUnavailableError("x")), raises(CatalogUnavailableError("x"))]
)
@pytest.mark.parametrize("fails", [False, True], ids=["the call hangs", "the call fails"])
async def test_first_call_without_an_answer_is_said_within_ten_seconds(
    watched: Watched, fails: bool, answer: Callable[[], Awaitable[object]]
) -> None:
    watched.answer = answer
    await asyncio.sleep(100.3)
    number = watched.begin()
    if fails:
        watched.end(number, StorageUnavailableError("x"))
    with capture_logs() as logs:
        await asyncio.sleep(SAID_S_MAX)
        assert watched.is_said()
        assert (watched.watch.is_cut_off, watched.watch.must_give_up) == (True, False)
        await asyncio.sleep(GIVE_UP_S - SAID_S_MAX)
        assert watched.watch.must_give_up
        await asyncio.sleep(100.0)
        watched.answer = answers
        await asyncio.sleep(SAID_S_MAX)
    assert not watched.is_said()
    assert [entry["event"] for entry in logs] == [
        "storage.answers_fail",
        "storage.answers_recovered",
    ]
    assert not watched.watch.is_cut_off, "nothing was given up, so it is trusted at once"


@pytest.mark.parametrize("answer", [answers, raises(NotFoundError("x")), raises(AccessError("x"))])
async def test_long_call_is_no_silence_while_the_question_is_answered(
    watched: Watched, answer: Callable[[], Awaitable[object]]
) -> None:
    watched.answer = answer
    number = watched.begin()
    await asyncio.sleep(100.0)
    assert not watched.is_said()
    assert 10 <= watched.asked <= 25
    watched.end(number)
    asked = watched.asked
    await asyncio.sleep(100.0)
    assert watched.asked == asked, "nothing is asked without a reason"


@pytest.mark.parametrize("error", [None, NotFoundError("x"), AccessError("x")])
async def test_place_that_answers_another_call_is_not_asked(
    watched: Watched, error: FrazilError | None
) -> None:
    watched.answer = hangs
    watched.begin()
    for _ in range(100):
        watched.end(watched.begin(), error)
        await asyncio.sleep(1.0)
    assert watched.asked == 0


async def test_failed_call_is_no_silence_once_another_one_was_answered(watched: Watched) -> None:
    watched.answer = hangs
    watched.end(watched.begin(), StorageUnavailableError("x"))
    watched.end(watched.begin())
    await asyncio.sleep(100.0)
    assert watched.asked == 0


async def test_canceled_call_tells_nothing(watched: Watched) -> None:
    watched.answer = hangs
    watched.end(watched.begin(), asyncio.CancelledError())
    await asyncio.sleep(100.0)
    assert watched.asked == 0


async def test_place_is_asked_once_another_committer_has_lost_one(watched: Watched) -> None:
    watched.watch.doubt_all()
    await asyncio.sleep(5.0)
    assert (watched.asked, watched.is_said()) == (1, False)
    watched.answer = hangs
    watched.watch.doubt_all()
    await asyncio.sleep(6.0)
    assert watched.is_said()
