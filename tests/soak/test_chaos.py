from __future__ import annotations

from itertools import islice

from tests.soak.chaos import FaultKind, strikes


def test_a_seed_tells_the_whole_schedule() -> None:
    def first(seed: int) -> list[object]:
        return list(islice(strikes(seed, pause_s=5.0, lease_s=6.0), 50))

    assert first(1) == first(1)
    assert first(1) != first(2)


def test_each_kind_of_blow_comes_before_any_comes_again() -> None:
    schedule = list(islice(strikes(3, pause_s=4.0, lease_s=6.0), 3 * len(FaultKind)))
    for start in range(0, len(schedule), len(FaultKind)):
        assert {each.kind for each in schedule[start : start + len(FaultKind)]} == set(FaultKind)
    assert all(2.0 <= each.pause_s <= 6.0 for each in schedule)
    assert all(each.lasts_s > 6.0 for each in schedule if each.kind is FaultKind.STOP)
    assert {each.pick(3) for each in schedule} == {0, 1, 2}
