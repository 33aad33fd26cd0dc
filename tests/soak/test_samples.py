from __future__ import annotations

import os
import random

import pytest

from tests.soak.samples import Sample, Standstills, Window, sample, slope, trend, trends_of, windows

MIB = 1024 * 1024


def grown(mib_per_s: float, handles_per_s: float = 0.0) -> list[Sample]:
    """Return samples of ten minutes, with noise, and a warm-up in which the process doubles."""
    chance = random.Random(1)
    return [
        Sample(
            float(at_s),
            "committer",
            round((min(100, 50 + at_s) + mib_per_s * at_s + chance.uniform(-3, 3)) * MIB),
            round(20 + handles_per_s * at_s + chance.uniform(-4, 4)),
        )
        for at_s in range(600)
    ]


def test_noise_and_a_warm_up_are_flat() -> None:
    assert [one.is_flat for one in trends_of("committer", grown(0.0))] == [True, True]


def test_what_leaks_is_not_flat() -> None:
    memory, handles = trends_of("committer", grown(0.1, handles_per_s=0.05))
    assert not memory.is_flat and not handles.is_flat
    assert memory.growth == pytest.approx(40.0, abs=4.0)
    assert "growth after warm-up +39.6" in str(memory)


def test_other_processes_do_not_count() -> None:
    leaking = [Sample(float(at), "other", at * MIB * 100, at) for at in range(30)]
    assert all(one.points == 400 for one in trends_of("committer", grown(0.0) + leaking))


def test_some_outliers_do_not_bend_a_slope() -> None:
    line = [(float(each), 2.0 * each) for each in range(30)]
    assert slope([*line[:10], (10.0, 9_000.0), *line[11:]]) == pytest.approx(2.0)
    assert slope([]) == slope(line[:1]) == 0.0


def test_a_trend_of_nothing_has_no_points() -> None:
    assert trend("x", [], growth_max=1.0).points == 0


def test_latencies_are_told_by_window() -> None:
    ends = [(0.1, 1.0), (0.2, 3.0), (0.3, 2.0), (7.0, 5.0)]
    assert windows(ends, 5.0) == [Window(0.0, 3, 2.0, 3.0), Window(5.0, 1, 5.0, 5.0)]


def test_this_process_can_be_sampled_and_one_that_is_gone_cannot() -> None:
    found = sample("test", os.getpid(), 1.0)
    assert found and found.resident_bytes > MIB and found.handles > 2
    assert sample("test", 2**22 + 1, 1.0) is None


def test_the_oldest_request_is_known_also_after_it_has_left() -> None:
    standstills = Standstills()
    standstills.look(0.0, ["a"])
    standstills.look(5.0, ["a", "b"])
    standstills.look(7.0, ["b", "c"])
    assert (standstills.oldest_s, standstills.oldest) == (5.0, "a")
    standstills.look(8.0, [])
    # The same name again is another request: a replay, or an attempt that was sent again.
    standstills.look(90.0, ["b"])
    assert standstills.oldest_s == 5.0
    standstills.look(96.0, ["b"])
    assert (standstills.oldest_s, standstills.oldest) == (6.0, "b")
