"""Turns of producers of unlike appetite."""

from __future__ import annotations

import pytest

from committer.plan.scheduling.fair_queue import FairQueue


def _taken(queue: FairQueue[str], turns: int) -> list[str]:
    return [queue.take() for _ in range(turns)]


def test_one_producers_backlog_delays_itself_alone() -> None:
    queue = FairQueue[str]()
    for number in range(1_000):
        queue.add("greedy", 100, f"greedy-{number}")
    queue.take()
    queue.add("modest", 100, "modest")
    assert "modest" in _taken(queue, 2)


def test_a_producers_own_work_keeps_its_order() -> None:
    queue = FairQueue[str]()
    for number, cost in enumerate((50, 1, 20)):
        queue.add("query", cost, str(number))
    assert _taken(queue, 3) == ["0", "1", "2"]


def test_small_work_passes_large_work_of_others() -> None:
    queue = FairQueue[str]()
    for number in range(20):
        queue.add(f"large-{number}", 1_000, "large")
    queue.add("small", 10, "small")
    assert queue.take() == "small"


def test_large_work_gets_its_turn_while_small_work_of_ever_new_producers_comes() -> None:
    queue = FairQueue[str]()
    queue.add("large", 1_000, "large")
    taken = []
    for number in range(200):
        queue.add(f"small-{number}", 10, "small")
        taken.append(queue.take())
    assert taken.index("large") <= 100


def test_two_that_always_have_work_get_as_much_each() -> None:
    queue = FairQueue[tuple[str, int]]()
    costs = {"fine": 10, "coarse": 70}
    for producer, cost in costs.items():
        for _ in range(1_000):
            queue.add(producer, cost, (producer, cost))
    served = dict.fromkeys(costs, 0)
    for _ in range(800):
        producer, cost = queue.take()
        served[producer] += cost
    assert abs(served["fine"] - served["coarse"]) <= 70


def test_what_it_remembers_of_producers_goes_with_their_work() -> None:
    queue = FairQueue[int]()
    for number in range(1_000):
        queue.add(f"query-{number}", 5, number)
    for _ in range(1_000):
        queue.take()
    assert len(queue) == 0 and queue._last == {}
    with pytest.raises(IndexError):
        queue.take()
