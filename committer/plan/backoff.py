"""The delay before an attempt is repeated."""

from __future__ import annotations

FIRST_S = 0.02
CAP_S = 10.0


def backoff_s(attempt: int, jitter: float) -> float:
    """Exponential with full jitter: uniform in [0, min(cap, first · 2^attempt)), attempt from 0."""
    return jitter * min(CAP_S, FIRST_S * 2.0 ** min(attempt, 40))
