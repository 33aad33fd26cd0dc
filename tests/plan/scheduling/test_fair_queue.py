"""Turns of producers and tables of unlike appetite."""

from __future__ import annotations

import pytest

from committer.plan.scheduling.fair_queue import FairQueue, TableFairQueue


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


# --- Age -----------------------------------------------------------------------------------------


def test_large_work_is_taken_in_the_end_while_more_new_producers_come_than_are_served() -> None:
    """The virtual time stands all but still then, so that its tag would never be reached."""
    queue = FairQueue[str](overtaken_max=2_000)
    queue.add("large", 1_000, "large")
    taken = []
    for number in range(1_000):
        queue.add(f"a{number}", 10, "small")
        queue.add(f"b{number}", 10, "small")
        taken.append(queue.take())
    assert taken.index("large") == 200


def test_the_oldest_get_half_of_what_is_served_in_the_order_of_their_age() -> None:
    queue = FairQueue[str](overtaken_max=1_000)
    for number in range(3):
        queue.add(f"large-{number}", 500, f"large-{number}")
    for number in range(2_000):
        queue.add(f"small-{number}", 10, "small")
    taken = _taken(queue, 253)
    at = [taken.index(f"large-{number}") for number in range(3)]
    assert at == [100, 151, 202]


def test_an_old_backlog_delays_others_by_two_of_its_pieces_at_most() -> None:
    queue = FairQueue[str](overtaken_max=1_000)
    for _ in range(500):
        queue.add("greedy", 300, "greedy")
    _taken(queue, 100)
    for number in range(50):
        queue.add("modest", 10, f"modest-{number}")
        assert f"modest-{number}" in _taken(queue, 3)


def test_a_producers_own_work_keeps_its_order_when_its_age_decides() -> None:
    queue = FairQueue[int](overtaken_max=20)
    for number in range(40):
        queue.add(f"query-{number % 3}", 1 + number % 7, number)
    taken = [queue.take() for _ in range(40)]
    for producer in range(3):
        own = [number for number in taken if number % 3 == producer]
        assert own == sorted(own)
    assert len(queue) == 0 and queue._last == {}
    with pytest.raises(IndexError):
        queue.take()


# --- Tables --------------------------------------------------------------------------------------


def _taken_of_tables(queue: TableFairQueue[str], turns: int) -> list[str]:
    return [queue.take() for _ in range(turns)]


def test_the_many_producers_of_one_table_do_not_delay_another_table() -> None:
    queue = TableFairQueue[str]()
    for number in range(1_000):
        queue.add("crowded", f"query-{number}", 100, f"crowded-{number}")
    queue.take()
    for number in range(20):
        queue.add("quiet", "query", 100, f"quiet-{number}")
    taken = _taken_of_tables(queue, 42)
    assert sum(work.startswith("quiet") for work in taken) == 20


def test_producers_of_one_table_take_turns_in_those_of_their_table() -> None:
    queue = TableFairQueue[str]()
    for number in range(100):
        queue.add("a", "greedy", 100, f"greedy-{number}")
        queue.add("b", "other", 100, "other")
    queue.add("a", "modest", 10, "modest")
    assert "modest" in _taken_of_tables(queue, 3)


def test_two_tables_that_always_have_work_get_as_much_each() -> None:
    queue = TableFairQueue[tuple[str, int]]()
    for number in range(1_000):
        queue.add("fine", f"query-{number % 7}", 10, ("fine", 10))
        queue.add("coarse", f"query-{number % 3}", 70, ("coarse", 70))
    served = {"fine": 0, "coarse": 0}
    for _ in range(800):
        table, cost = queue.take()
        served[table] += cost
    assert abs(served["fine"] - served["coarse"]) <= 70


def test_what_it_remembers_of_tables_goes_with_their_work() -> None:
    queue = TableFairQueue[int]()
    for number in range(100):
        queue.add(f"table-{number}", "query", 5, number)
    assert len(queue) == 100
    assert sorted(queue.take() for _ in range(100)) == list(range(100))
    assert len(queue) == 0 and queue._producers == {}
    with pytest.raises(IndexError):
        queue.take()


def test_large_work_of_a_table_is_taken_in_the_end_while_ever_more_tables_come() -> None:
    queue = TableFairQueue[str](overtaken_max=2_000)
    queue.add("large", "query", 1_000, "large")
    taken = []
    for number in range(1_000):
        queue.add(f"a{number}", "query", 10, "small")
        queue.add(f"b{number}", "query", 10, "small")
        taken.append(queue.take())
    assert taken.index("large") == 200
