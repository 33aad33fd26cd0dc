"""The plan of a benchmark run: its scenarios, how often, how large."""

from __future__ import annotations

from dataclasses import dataclass

from bench.runs import Compacting

SCENARIOS = ("a", "b", "c", "d", "e", "f", "g")


@dataclass(frozen=True, slots=True)
class Plan:
    """A full run takes about 25 minutes on two idle cores; `quick` says only that all works.

    `systems`: beginnings of the names of those that run. `profile`: also write where Frazil's time
    goes; it costs some speed.
    """

    scenarios: tuple[str, ...] = SCENARIOS
    systems: tuple[str, ...] = ("",)
    rounds: int = 3
    quick: bool = False
    profile: bool = False

    def has(self, system: str) -> bool:
        return any(system.startswith(each) for each in self.systems)

    # --- a, b: writers that contend --------------------------------------------------------------

    @property
    def writers(self) -> tuple[int, ...]:
        return (1, 16) if self.quick else (1, 4, 16, 200)

    @property
    def window_s(self) -> float:
        return 1.0 if self.quick else 3.0

    @property
    def default_interval_window_s(self) -> float:
        """Some intervals, else one commit more or less would decide."""
        return 2.0 if self.quick else 6.0

    @property
    def default_interval_rounds(self) -> int:
        """Its rate is that of the interval; its latencies are those of many requests."""
        return 1

    @property
    def storage_delay_ms(self) -> int:
        return 25

    # --- c: open loop ----------------------------------------------------------------------------

    @property
    def producers(self) -> int:
        return 50 if self.quick else 1_000

    @property
    def epochs(self) -> int:
        return 4 if self.quick else 8

    # --- f: deletes, upserts, overwrites ---------------------------------------------------------

    @property
    def operating_writers(self) -> int:
        return 4 if self.quick else 16

    # --- g: a compaction beside a stream ---------------------------------------------------------

    @property
    def compacting(self) -> Compacting:
        if self.quick:
            return Compacting(8, 5, 4, work_s=1.6, period_s=0.1, hit_every=5, window_s=4.0)
        return Compacting(100, 20, 10, work_s=20.0, period_s=0.2, hit_every=5, window_s=40.0)

    # --- d: the size of one commit ---------------------------------------------------------------

    @property
    def commit_files(self) -> tuple[int, ...]:
        return (1, 1_000) if self.quick else (1, 1_000, 10_000, 100_000)

    @property
    def split_files(self) -> int:
        """The size that is also published as several requests."""
        return self.commit_files[-1]

    @property
    def split_requests(self) -> tuple[int, ...]:
        return (10,) if self.quick else (100, 1_000)

    def rounds_of(self, files: int) -> int:
        return min(self.rounds, 2) if files >= 100_000 else self.rounds

    def commits_of(self, files: int, *, is_slow: bool) -> int:
        """Return how often a commit of so many files is measured a round."""
        if files >= 100_000:
            return 1
        return (1 if is_slow else 2) if files >= 10_000 else 3

    # --- e: growth -------------------------------------------------------------------------------

    @property
    def existing_files(self) -> tuple[int, ...]:
        return (10, 1_000) if self.quick else (10, 1_000, 100_000)

    @property
    def commit_numbers(self) -> tuple[int, ...]:
        return (10, 60) if self.quick else (10, 300, 1_000, 20_000)

    @property
    def metadata_commits(self) -> int:
        return 60 if self.quick else 1_000

    @property
    def growth_limit_s(self) -> float:
        """For the commits of Frazil; what is not reached is said."""
        return 20.0 if self.quick else 400.0

    @property
    def peer_growth_limit_s(self) -> float:
        return 5.0 if self.quick else 60.0
