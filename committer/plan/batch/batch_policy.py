"""Decides when a batch is committed, and with which requests."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from committer.ledger_entry import LATEST_MAX
from committer.plan.batch.request_check import CheckedRequest
from committer.plan.ledger.quiet_gap import GapPolicy, property_ms


@dataclass(frozen=True, slots=True)
class BatchPolicy:
    """Bounds of a batch, and the least distance between the starts of two commits of one table.

    Each bound is a soft one: a batch ends with the request that reaches it, so that one large
    request always fits. `removed_files_max`: data files that are removed by name. While their
    manifests are decoded and written anew, the other requests of the batch wait.
    """

    min_interval_ms: int = 1_000
    files_max: int = 100_000
    bytes_max: int = 64 * 1024 * 1024
    requests_max: int = 10_000
    removed_files_max: int = 2_000
    gap: GapPolicy = field(default_factory=GapPolicy)


# Of one producer in a batch.
PRODUCER_REQUESTS_MAX = LATEST_MAX // 2

INTERVAL_PROPERTY = "frazil.commit.min-interval-ms"
INTERVAL_MS_MAX = 3_600_000


def interval_ms(properties: Mapping[str, str], default: int) -> int:
    """Return a table's own least interval, at most an hour;
    the default if it has no readable one."""
    own_ms = property_ms(properties, INTERVAL_PROPERTY, INTERVAL_MS_MAX)
    return default if own_ms is None else own_ms


# Every commit writes the whole metadata file, and every reader reads it.
METADATA_BYTES_MAX = 8 * 1024 * 1024
_STRETCHED_MS_MIN = 1_000


def stretched_ms(interval_ms: int, metadata_bytes: int | None) -> int:
    """Return the interval of a table whose metadata file is too large: longer as it grows."""
    if metadata_bytes is None or metadata_bytes <= METADATA_BYTES_MAX:
        return interval_ms
    stretched = max(interval_ms, _STRETCHED_MS_MIN) * metadata_bytes // METADATA_BYTES_MAX
    return min(stretched, INTERVAL_MS_MAX)


# Writers that wait for a commit come back together, a moment behind it: gathering them halves the
# commits. A lone writer never waits.
_LINGER_MS = 2


def wait_ms(
    policy: BatchPolicy, *, last_start_ms: int | None, now_ms: int, several: bool = False
) -> int:
    """Return the delay of the next commit; the first of a quiet table has none.

    `several`: whether the last commit had more than one request. A clock that jumps backwards
    delays a table by one interval at most.
    """
    if last_start_ms is None:
        return 0
    left_ms = min(max(0, last_start_ms + policy.min_interval_ms - now_ms), policy.min_interval_ms)
    return max(left_ms, _LINGER_MS) if several else left_ms


def next_batch(
    pending: Iterable[CheckedRequest], policy: BatchPolicy
) -> tuple[CheckedRequest, ...]:
    """Take requests in their order of arrival, one for each (branch, producer, epoch). If not all
    fit, producers take turns, and what changes the table waits for all that came before it.

    Another attempt of an epoch waits for the next batch, where the ledger answers it; and so do
    more of one producer than its entry has room for until they have left the inbox. One that would
    remove too many files besides those before it waits too, with what follows it from its producer,
    and the others pass it. It keeps its place, so it never waits for what has come after it.
    """
    requests = [*pending]
    batch = _filled(requests, policy)
    if not batch.has_left_some:
        return tuple(batch.requests)
    places = {one.sealed.key: place for place, one in enumerate(requests)}
    shared = _filled(_in_turns(requests), policy)
    return tuple(sorted(shared.requests, key=lambda one: places[one.sealed.key]))


def _in_turns(requests: Sequence[CheckedRequest]) -> list[CheckedRequest]:
    """Put the first of each producer first, in their order, then the second of each, and so on; and
    in the end those that change the table, each with what follows it from its producer."""
    ranks: Counter[str] = Counter()
    altering: set[str] = set()
    ranked: list[tuple[bool, int, CheckedRequest]] = []
    for one in requests:
        producer = one.request.producer.id
        ranks[producer] += 1
        if one.request.operation == "alter":
            altering.add(producer)
        ranked.append((producer in altering, ranks[producer], one))
    return [one for *_, one in sorted(ranked, key=lambda each: each[:2])]


def _filled(requests: Iterable[CheckedRequest], policy: BatchPolicy) -> _Batch:
    batch = _Batch(policy)
    epochs: dict[tuple[str, str], set[int]] = defaultdict(set)
    passed: dict[tuple[str, str], int] = {}
    for checked in requests:
        request = checked.request
        producer = request.branch, request.producer.id
        known, epoch = epochs[producer], request.epoch
        if epoch in known or len(known) >= PRODUCER_REQUESTS_MAX:
            continue
        if epoch >= passed.get(producer, epoch + 1):
            continue
        if batch.is_full:
            batch.has_left_some = True
            break
        # Beside a later epoch of its producer it is taken all the same: none overtakes a lower one.
        if batch.removes_too_much_with(checked) and epoch > max(known, default=-1):
            passed[producer] = epoch
            continue
        known.add(epoch)
        batch.add(checked)
    return batch


@dataclass(slots=True)
class _Batch:
    """Requests, and what the policy bounds of them. `has_left_some`: it was full before the last
    of those that could have been taken.
    """

    policy: BatchPolicy
    has_left_some: bool = False
    requests: list[CheckedRequest] = field(default_factory=list)
    files: int = 0
    removed_files: int = 0
    size_bytes: int = 0

    @property
    def is_full(self) -> bool:
        return (
            len(self.requests) >= self.policy.requests_max
            or self.files >= self.policy.files_max
            or self.size_bytes >= self.policy.bytes_max
        )

    def removes_too_much_with(self, checked: CheckedRequest) -> bool:
        """Return whether one more removal is to wait; the first one never is."""
        removes = len(checked.request.needs.removed_data_files)
        after = self.removed_files + removes
        return bool(removes and self.removed_files) and after > self.policy.removed_files_max

    def add(self, checked: CheckedRequest) -> None:
        self.requests.append(checked)
        self.files += checked.files_count
        self.removed_files += len(checked.request.needs.removed_data_files)
        self.size_bytes += checked.size_bytes
