"""Threads of a place that hangs: its own calls fail in time, those of other places go on."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator

import pytest

from committer import place_threads
from committer.place_threads import (
    SWITCH_INTERVAL_S,
    NoAnswerError,
    PlaceLoop,
    PlaceThreads,
    progressed,
    unanswered,
)

WAIT_S = 60.0


@pytest.fixture
def opened() -> Iterator[threading.Event]:
    """Yield the gate that hung calls wait for. It is opened at the end."""
    event = threading.Event()
    yield event
    event.set()


def test_the_interpreter_is_given_away_more_often_while_a_thread_computes() -> None:
    usual_s = sys.getswitchinterval()
    assert usual_s > 2 * SWITCH_INTERVAL_S
    begun, gate = threading.Event(), threading.Event()

    def compute() -> float:
        begun.set()
        gate.wait()
        return sys.getswitchinterval()

    async def run() -> None:
        computing = asyncio.create_task(asyncio.to_thread(compute))
        await asyncio.to_thread(begun.wait)
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(lambda: 1 // 0)
        assert sys.getswitchinterval() == pytest.approx(SWITCH_INTERVAL_S)
        gate.set()
        assert await computing == pytest.approx(SWITCH_INTERVAL_S)

    with asyncio.Runner(loop_factory=PlaceLoop) as runner:
        runner.run(run())
    assert sys.getswitchinterval() == usual_s


@pytest.fixture
def short_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a call hang at once, as far as a place counts it: the test says when it looks."""
    monkeypatch.setattr(place_threads, "NAMED_S", 0.0)


async def hang(threads: PlaceThreads, gate: threading.Event) -> asyncio.Task[bool]:
    """Begin a call that waits for the gate, and return it once a thread is in it."""
    loop, begun = asyncio.get_running_loop(), asyncio.Event()

    def work() -> bool:
        loop.call_soon_threadsafe(begun.set)
        return gate.wait()

    call = asyncio.create_task(threads.run("/mount/file", work))
    await begun.wait()
    return call


@pytest.mark.usefixtures("short_times")
async def test_a_place_whose_threads_all_hang_fails_at_once_and_another_answers(
    opened: threading.Event,
) -> None:
    hung = PlaceThreads("files of table db.hung", threads_max=2)
    good = PlaceThreads("files of table db.good", threads_max=2)
    calls = [await hang(hung, opened) for _ in range(2)]
    with pytest.raises(NoAnswerError, match=r"db\.hung: all 2 calls .* `/mount/other`") as caught:
        await asyncio.wait_for(hung.run("/mount/other", int), WAIT_S)
    assert not caught.value.is_begun
    assert await asyncio.wait_for(good.run("/disk/file", lambda: 7), WAIT_S) == 7
    named = {one.place: one for one in unanswered()}
    assert (named[hung.place].what, named[hung.place].hung) == ("/mount/file", 2)
    assert "`/mount/file`: 2 of 2 calls hang" in str(named[hung.place])
    opened.set()
    assert await asyncio.gather(*calls) == [True, True]
    assert await hung.run("/mount/other", lambda: 8) == 8


async def test_a_call_without_progress_fails_in_time_and_its_caller_knows_that_it_was_begun(
    opened: threading.Event,
) -> None:
    threads = PlaceThreads("files", threads_max=1, answer_s=0.0)
    with pytest.raises(NoAnswerError, match="files: `/mount/file` gave no answer") as caught:
        await asyncio.wait_for(await hang(threads, opened), WAIT_S)
    assert caught.value.is_begun


@pytest.mark.usefixtures("short_times")
async def test_calls_that_wait_for_a_thread_fail_when_all_hang_and_are_never_begun(
    opened: threading.Event,
) -> None:
    threads = PlaceThreads("files", threads_max=1)
    begun: list[str] = []
    place_threads.NAMED_S = WAIT_S  # restored by the fixture
    hanging = await hang(threads, opened)
    waiting = asyncio.create_task(threads.run("/mount/next", lambda: begun.append("next")))
    place_threads.NAMED_S = 0.0
    with pytest.raises(NoAnswerError) as caught:
        await asyncio.wait_for(waiting, WAIT_S)
    assert not caught.value.is_begun
    opened.set()
    assert await hanging
    assert begun == []


async def test_progress_begins_the_time_of_a_call_anew(opened: threading.Event) -> None:
    threads = PlaceThreads("files", threads_max=1, answer_s=30.0)
    loop, begun, moved = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
    first_step = threading.Event()

    def work() -> bool:
        loop.call_soon_threadsafe(begun.set)
        first_step.wait()
        progressed()
        loop.call_soon_threadsafe(moved.set)
        return opened.wait()

    call = asyncio.create_task(threads.run("/file", work))
    await begun.wait()
    (running,) = threads._running
    running.moved_s -= 20.0
    first_step.set()
    await moved.wait()
    threads.look(place_threads._now_s() + 15.0)
    assert not running.future.done()
    threads.look(place_threads._now_s() + 30.0)
    with pytest.raises(NoAnswerError):
        await call


async def test_a_canceled_call_that_waits_is_not_begun(opened: threading.Event) -> None:
    threads = PlaceThreads("files", threads_max=1)
    begun: list[int] = []
    hanging = await hang(threads, opened)
    waiting = asyncio.create_task(threads.run("/file", lambda: begun.append(1)))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    opened.set()
    await hanging
    assert await threads.run("/file", lambda: 2) == 2
    assert begun == []


async def test_errors_are_the_callers_and_threads_are_used_again() -> None:
    threads = PlaceThreads("files", threads_max=3)
    names = {await threads.run("/file", lambda: threading.current_thread().name) for _ in range(5)}
    assert len(names) == 1

    def fail() -> None:
        raise OSError("of the disk")

    with pytest.raises(OSError, match="of the disk"):
        await threads.run("/file", fail)
    await asyncio.to_thread(threads.shutdown)
    with pytest.raises(RuntimeError, match="closed"):
        await threads.run("/file", int)
