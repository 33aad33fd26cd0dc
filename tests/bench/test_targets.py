"""Targets: what was found, and whether that is enough."""

from __future__ import annotations

from bench.records import Record, grouped
from bench.targets import Target, targets
from tests.bench.builders import record


def found(records: list[Record], beginning: str) -> Target:
    [target] = [
        one
        for one in targets(grouped(records))
        if one.scenario == records[0].scenario and one.text.startswith(beginning)
    ]
    return target


def contention(ours: float, fast: float, merge: float) -> list[Record]:
    return [
        record(landed_per_s=ours, failed=0),
        record(system="java-fast", landed_per_s=fast, failed=9),
        record(system="java-merge", landed_per_s=merge, failed=9),
    ]


def test_a_rate_is_compared_with_the_better_of_javas_modes() -> None:
    target = found(contention(500, 10, 20), "landed/s at 16 writers ÷ Java's better mode at 16")
    assert (target.found, target.wanted, target.verdict) == (25.0, 25, "reached")
    target = found(contention(499, 10, 20), "landed/s at 16 writers ÷ Java's better mode at 16")
    assert target.verdict == "missed"


def test_one_failed_request_of_ours_in_any_round_misses_the_peers_failures_do_not() -> None:
    for ours, verdict in [((0, 0), "reached"), ((0, 1), "missed")]:
        records = [record(failed=count) for count in ours]
        records.append(record(system="java-fast", failed=9))
        target = found(records, "failed")
        assert target.verdict == verdict


def test_what_was_not_measured_is_neither_reached_nor_missed() -> None:
    assert {target.verdict for target in targets({})} == {"not measured"}


def test_operations_of_disjoint_writers_may_not_fail_and_are_compared_with_java() -> None:
    case = "16 writers, vectors"
    records = [
        record("f", case=case, landed_per_s=500.0, failed=0),
        record("f", system="java-merge", case=case, landed_per_s=40.0, failed=7),
    ]
    assert found(records, "landed/s ÷ Java's, 16 writers, vectors").found == 12.5
    assert found(records, "failed requests, 16 writers, vectors").verdict == "reached"


def test_latency_is_compared_with_the_time_from_commit_to_commit() -> None:
    records = [record(p99_ms=40.0, p99_durable_ms=29.0, cycle_ms=10.0, failed=0)]
    assert found(records, "p99 from the call ÷ commit time, 16").verdict == "missed"
    assert found(records, "p99 from durable ÷ commit time, 16").verdict == "reached"


def test_a_commit_of_many_files_counts_in_its_fastest_split() -> None:
    records = [
        record("d", case="100,000 files", files_per_s=20_000.0),
        record("d", case="100,000 files from 100 requests", files_per_s=33_000.0),
        record("d", "java-fast", "100,000 files", files_per_s=11_000.0),
    ]
    target = found(records, "100,000 files, every entry checked")
    assert (target.found, target.verdict) == (3.0, "reached")


def test_growth_that_stopped_before_its_number_says_so() -> None:
    stopped = "at commit 9,000, at the time limit"
    target = found([record("e", case="commit 20,000", ratio=1.0, stopped=stopped)], "one-file")
    assert "not reached" in target.text
