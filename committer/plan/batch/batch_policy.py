"""Decides when a batch is committed, and with which requests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from committer.ledger_entry import LATEST_MAX
from committer.plan.batch.request_check import CheckedRequest
from committer.plan.ledger.quiet_gap import GapPolicy


@dataclass(frozen=True, slots=True)
class BatchPolicy:
    """Bounds of a batch, and the least distance between the starts of two commits of one table.

    Each bound is a soft one: a batch ends with the request that reaches it, so that one large
    request always fits.
    """

    min_interval_ms: int = 1_000
    files_max: int = 100_000
    bytes_max: int = 64 * 1024 * 1024
    requests_max: int = 10_000
    gap: GapPolicy = field(default_factory=GapPolicy)


# Of one producer in a batch.
PRODUCER_REQUESTS_MAX = LATEST_MAX // 2

INTERVAL_PROPERTY = "frazil.commit.min-interval-ms"
INTERVAL_MS_MAX = 3_600_000


def interval_ms(properties: Mapping[str, str], default: int) -> int:
    """Return a table's own least interval, at most an hour;
    the default if it has no readable one."""
    text = properties.get(INTERVAL_PROPERTY, "").strip()
    if not (text.isascii() and text.isdigit()):
        return default
    return min(int(text), INTERVAL_MS_MAX) if len(text) < 16 else INTERVAL_MS_MAX


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
    """Take requests in their order of arrival, one for each (branch, producer, epoch).

    Another attempt of an epoch waits for the next batch, where the ledger answers it; and so do
    more of one producer than its entry has room for until they have left the inbox.
    """
    batch: list[CheckedRequest] = []
    epochs: dict[tuple[str, str], set[int]] = defaultdict(set)
    files = content_bytes = 0
    for checked in pending:
        request = checked.request
        known = epochs[request.branch, request.producer.id]
        if request.epoch in known or len(known) >= PRODUCER_REQUESTS_MAX:
            continue
        if (
            len(batch) >= policy.requests_max
            or files >= policy.files_max
            or content_bytes >= policy.bytes_max
        ):
            break
        known.add(request.epoch)
        batch.append(checked)
        files += checked.files_count
        content_bytes += checked.size_bytes
    return tuple(batch)
