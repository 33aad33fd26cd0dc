"""How much happens in a second of a play: what the numbers of a drawn scenario are chosen from.

Most seeds are dense, as most of what a second of rest costs is committers that look for work. Some
stay sparse: leases run out, clients give up and late effects arrive while little else happens.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitPacer:
    """A choice for each number. `epochs`: the least and the most. `fates_s`: when the last of what
    befalls servers may do so. `breaker_threshold`: a producer with an open breaker waits for an
    operator, for longer than a run waits for its end.
    """

    queries: tuple[int, ...]
    epochs: tuple[int, int]
    triggers_s: tuple[float, ...]
    foreign_pauses_s: tuple[float, ...]
    min_interval_ms: int
    table_intervals_ms: tuple[str, ...]
    yields_to_others_ms: tuple[int, ...]
    batches_max: tuple[int, ...]
    slownesses: tuple[float, ...]
    plays_s: tuple[float, ...]
    fates_s: float
    breaker_threshold: int


SPARSE = CommitPacer(
    queries=(1, 2, 3, 4),
    epochs=(3, 20),
    triggers_s=(0.2, 0.5, 1.0, 4.0),
    foreign_pauses_s=(0.5, 3.0, 10.0),
    min_interval_ms=1_000,
    table_intervals_ms=("0", "100", "1000", "3000"),
    yields_to_others_ms=(0, 500, 5_000),
    batches_max=(1, 2, 3, 10_000),
    slownesses=(0.2, 1.0, 1.0, 5.0, 30.0),
    plays_s=(10.0, 20.0, 20.0, 40.0),
    fates_s=40.0,
    breaker_threshold=20,
)
DENSE = CommitPacer(
    queries=(2, 3, 4, 6),
    epochs=(15, 50),
    triggers_s=(0.05, 0.1, 0.3, 1.0),
    foreign_pauses_s=(0.2, 1.0, 4.0),
    min_interval_ms=50,
    table_intervals_ms=("0", "0", "20", "300"),
    yields_to_others_ms=(0, 0, 100, 500),
    batches_max=(1, 1, 1, 1, 2, 10_000),
    slownesses=(0.2, 0.2, 0.5, 1.0, 4.0),
    plays_s=(6.0, 10.0, 14.0),
    fates_s=12.0,
    breaker_threshold=1_000,
)
# One is drawn for each seed.
PACES = (SPARSE, *7 * (DENSE,))
