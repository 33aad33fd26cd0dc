"""Patterns of metrics: what they capture, and what they refuse to match."""

from __future__ import annotations

import pytest

from committer.iceberg.avro.binary import LONGS, encode_bytes
from committer.iceberg.scan.metrics_reader import (
    ColumnMetrics,
    Metrics,
    Shape,
    metrics_pattern,
    read_metrics,
    search_metrics,
    widened,
)

WANTED = frozenset({2, 70})


def encoded(
    counts: dict[int, int] | None, bounds: dict[int, bytes], *, sized: bool = False
) -> bytes:
    """Encode four maps of these counts and two of these bounds."""
    longs = None if counts is None else {key: LONGS[value] for key, value in counts.items()}
    prefixed = {key: encode_bytes(value) for key, value in bounds.items()}
    return b"".join([_map(longs, sized)] * 4 + [_map(prefixed, sized)] * 2)


def _map(values: dict[int, bytes] | None, sized: bool) -> bytes:
    if values is None:
        return b"\0"
    body = b"".join(LONGS[key] + value for key, value in values.items())
    if not values:
        return b"\x02\0"
    head = LONGS[-len(values)] + LONGS[len(body)] if sized else LONGS[len(values)]
    return b"\x02" + head + body + b"\0"


def read_one(raw: bytes) -> tuple[Metrics, Shape]:
    metrics, position, shape = read_metrics(raw, 0, WANTED, 9)
    assert position == len(raw) and shape is not None
    return metrics, shape


def values(metrics: ColumnMetrics) -> tuple[object, ...]:
    return (
        metrics.value_counts,
        metrics.null_value_counts,
        metrics.nan_value_counts,
        metrics.lower_bounds,
        metrics.upper_bounds,
    )


@pytest.mark.parametrize("sized", [False, True])
@pytest.mark.parametrize("counts", [None, {}, {1: 5, 2: 3}, {70: 2**40, 2: 0, 5: 7}, {9: 1}])
def test_a_pattern_captures_what_is_read_pair_by_pair(
    counts: dict[int, int] | None, sized: bool
) -> None:
    raw = encoded(counts, {2: b"abc", 4: b"x" * 8, 70: b""}, sized=sized)
    by_pairs, shape = read_one(raw)
    by_maps, stop = search_metrics(raw, 0, WANTED, 9)
    assert stop == len(raw) and values(by_maps) == values(by_pairs)
    pattern = metrics_pattern(shape, WANTED)
    match = pattern.pattern.match(raw)
    assert match is not None and match.end() == len(raw)
    found = pattern.metrics(match, 9)
    assert values(found) == values(by_pairs)
    some = counts and {key: value for key, value in counts.items() if key in WANTED}
    assert values(found) == (some, some, some, {2: b"abc", 70: b""}, {2: b"abc", 70: b""})


def test_a_pattern_does_not_match_another_column_or_another_size() -> None:
    _, shape = read_one(encoded({1: 5, 2: 3}, {2: b"abc"}))
    pattern = metrics_pattern(shape, WANTED).pattern
    assert pattern.match(encoded({1: 7, 2: 1}, {2: b"xyz"}))
    assert not pattern.match(encoded({1: 5, 3: 3}, {2: b"abc"}))
    assert not pattern.match(encoded({2: 3, 1: 5}, {2: b"abc"}))
    assert not pattern.match(encoded({1: 5, 2: 3}, {3: b"abc"}))
    assert not pattern.match(encoded({1: 5, 2: 3}, {2: b"abcd"}))
    assert not pattern.match(encoded({1: 5, 2: 3}, {2: b"abc"}, sized=True))


def test_lengths_that_vary_are_learned() -> None:
    _, first = read_one(encoded({1: 5}, {2: b"abc", 4: b"x" * 8}))
    _, second = read_one(encoded({1: 5}, {2: b"ab", 4: b"y" * 8}))
    both = metrics_pattern(widened(second, first), WANTED).pattern
    for text in (b"", b"abc", b"x" * 63):
        assert both.match(encoded({1: 5}, {2: text, 4: b"z" * 8}))
    assert not both.match(encoded({1: 5}, {2: b"abc", 4: b"z" * 7}))
    _, other = read_one(encoded({1: 5}, {2: b"abc"}))
    assert widened(other, first) == other


def test_what_no_pattern_can_say_has_no_shape() -> None:
    for raw in (
        encoded({1: 5}, {2: b"x" * 64}),
        encoded(dict.fromkeys(range(129), 1), {}),
        b"\x02" + LONGS[1] + LONGS[1] + LONGS[5] + LONGS[1] + LONGS[2] + LONGS[6] + b"\0" * 6,
    ):
        metrics, position, shape = read_metrics(raw, 0, WANTED, 9)
        assert position == len(raw) and shape is None
        by_maps, stop = search_metrics(raw, 0, WANTED, 9)
        assert stop == len(raw) and values(by_maps) == values(metrics)
    assert metrics.record_count == 9
