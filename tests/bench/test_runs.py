"""Figures from a run's requests: rates, latencies, whether they are proven."""

from __future__ import annotations

import math

from bench.runs import Outcome
from bench.tables import Counted


def test_the_rate_counts_what_landed_inside_the_window_only() -> None:
    outcome = Outcome(10.0, [(10.0, None, 10.5), (10.5, None, 12.0), (11.9, None, 12.1)])
    assert outcome.landed == 3
    assert outcome.rate(2.0) == 1.0


def test_the_rate_of_a_stopped_run_is_over_its_whole_time() -> None:
    outcome = Outcome(10.0, stopped="at the limit", ended_s=20.0, counted=Counted(5, 5, 5, 5))
    assert outcome.landed == 5
    assert outcome.rate(2.0) == 0.5


def test_latencies_are_from_the_call_and_from_durable() -> None:
    found = Outcome(0.0, [(1.0, 1.25, 2.0), (2.0, 2.5, 2.75)]).latencies_ms()
    assert found == {
        "p50_ms": 750.0,
        "p99_ms": 1_000.0,
        "max_ms": 1_000.0,
        "p50_durable_ms": 250.0,
        "p99_durable_ms": 750.0,
        "median_publish_ms": 375.0,
    }


def test_a_system_that_knows_no_durable_has_no_latency_from_it() -> None:
    found = Outcome(0.0, [(1.0, None, 2.0)]).latencies_ms()
    assert found["p50_ms"] == 1_000.0
    assert math.isnan(found["p50_durable_ms"])


def test_a_run_is_proven_by_exactly_the_files_that_landed() -> None:
    requests: list[tuple[float, float | None, float]] = [(0.0, None, 1.0), (1.0, None, 2.0)]
    for counted, is_proven in [
        (Counted(2, 2, 1, 1), True),
        (Counted(1, 1, 1, 1), False),
        (Counted(3, 3, 1, 1), False),
        (Counted(2, 1, 1, 1), False),  # a path twice
        (None, False),
    ]:
        assert Outcome(0.0, requests, counted=counted).is_proven == is_proven
