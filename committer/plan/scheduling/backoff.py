"""The delay before an attempt is repeated."""

from __future__ import annotations

FIRST_S = 0.02
CAP_S = 10.0


def backoff_s(attempt: int, jitter: float) -> float:
    """Return an exponential delay with full jitter:
    uniform in [0, min(cap, first · 2^attempt)), attempt from 0."""
    return jitter * min(CAP_S, FIRST_S * 2.0 ** min(attempt, 40))


def shortened_s(delay_s: float, jitter: float) -> float:
    """Return between half of a delay and all of it, so that not all wait equally long."""
    return delay_s * (0.5 + jitter / 2)


def retry_s(failures: int, jitter: float) -> float:
    """Return the delay before an unavailable component is asked again, after so many failures."""
    return shortened_s(backoff_s(failures + 3, 1.0), jitter)
