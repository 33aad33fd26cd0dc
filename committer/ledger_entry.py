"""One entry of the ledger: which epochs of one producer have landed on one branch of one table.

It is a table property, `frazil.producer.<id>` (other branches than main:
`frazil.producer@<branch>.<id>`), so it changes in the same swap as the snapshot, on every catalog.
Its durable text form is read and written here; what follows from it is decided in
`committer.plan.ledger.ledger`. Pure.

    {"v":1,"table":"<uuid>","epochs":"0-41,43","latest":[[<snapshot id>,<sequence number>,
     "spark-offsets",43,"<16 hex>","<attempt>",…],…]}

The decisions of an operator are in it too, so that the swap commits them and every committer obeys:
`frozen` (then the version is 2, which a committer that does not know the field cannot read, so it
lands nothing either), and `accepted`: attempts that may land once although the rest forbids it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import groupby, pairwise
from urllib.parse import quote, unquote
from uuid import UUID

import orjson

from committer.errors import InvalidMetadataError

LEDGER_PREFIX = "frazil.producer"
ENTRY_VERSION = 1
FROZEN_ENTRY_VERSION = 2
MAIN = "main"

# Few, because every byte of the ledger is in every metadata file. A producer replays what it was
# about to confirm: its last epoch, at most the one before.
LATEST_MIN = 2
# And those whose requests may still be in the inbox, some sixty bytes each. A batch has half as
# many of one producer at most, so that they are deleted while there is room.
LATEST_MAX = 2_000
# A producer that leaves more gaps than this (epochs that are timestamps, say) has its oldest gaps
# closed: an epoch that shows up in one later is quarantined, never skipped.
RANGES_MAX = 64
# Each has some fifty bytes, until it has landed.
ACCEPTED_MAX = 64
# How the producer ids of Frazil's own one-shot requests begin: those of commands, and of upkeep.
OPERATOR_PREFIX = "frazil-operator-"
UPKEEP_PREFIX = "frazil-upkeep-"


@dataclass(frozen=True, slots=True)
class EpochRanges:
    """A set of epochs as ascending, disjoint, non-adjacent inclusive ranges."""

    ranges: tuple[tuple[int, int], ...] = ()

    def __contains__(self, epoch: int) -> bool:
        position = bisect_right(self.ranges, (epoch, float("inf"))) - 1
        return position >= 0 and epoch <= self.ranges[position][1]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(self.ranges)

    def with_epoch(self, epoch: int) -> EpochRanges:
        """Add one epoch; the oldest gaps are closed beyond `RANGES_MAX` ranges."""
        last = self.ranges[-1] if self.ranges else None
        if last and epoch == last[1] + 1:
            return EpochRanges((*self.ranges[:-1], (last[0], epoch)))
        merged: list[tuple[int, int]] = []
        for low, high in sorted((*self.ranges, (epoch, epoch))):
            if merged and low <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
            else:
                merged.append((low, high))
        while len(merged) > RANGES_MAX:
            merged[:2] = [(merged[0][0], merged[1][1])]
        return EpochRanges(tuple(merged))

    def without(self, epochs: EpochRanges) -> EpochRanges:
        """Take epochs out, so that they may land again."""
        left: list[tuple[int, int]] = []
        for low, high in self.ranges:
            for gone_low, gone_high in epochs:
                if low <= high and gone_low <= high and gone_high >= low:
                    if low < gone_low:
                        left.append((low, gone_low - 1))
                    low = gone_high + 1
            if low <= high:
                left.append((low, high))
        return EpochRanges(tuple(left))

    def without_gaps(self, below: int) -> EpochRanges:
        """Close every gap below a landed epoch, from 0 on."""
        closed = [pair for pair in self.ranges if pair[0] <= below]
        if not closed:
            return self
        return EpochRanges(((0, closed[-1][1]), *self.ranges[len(closed) :]))

    @property
    def highest(self) -> int | None:
        return self.ranges[-1][1] if self.ranges else None

    def __str__(self) -> str:
        return ",".join(f"{low}" if low == high else f"{low}-{high}" for low, high in self.ranges)

    @classmethod
    def parse(cls, text: str) -> EpochRanges:
        """Parse ranges: the inverse of `str`. Errors: `ValueError`."""
        ranges = []
        for part in text.split(",") if text else []:
            low, _, high = part.partition("-")
            ranges.append((int(low), int(high or low)))
        flat = [bound for pair in ranges for bound in pair]
        if flat != sorted(flat) or any(second[0] <= first[1] for first, second in pairwise(ranges)):
            raise ValueError(f"epoch ranges out of order: `{text}`")
        return cls(tuple(ranges))


# The id of no snapshot: a change of a table that had none has landed without one.
NO_SNAPSHOT = 0


@dataclass(frozen=True, slots=True)
class Landed:
    """The snapshot in which an epoch landed, and the content that it stood for. `fingerprint` is
    shortened by `short_fingerprint`. `snapshot_id`: for a request that makes none, or one without a
    ref, the head of its branch at that time.
    """

    epoch: int
    fingerprint_kind: str
    fingerprint: str
    attempt: UUID
    snapshot_id: int
    sequence_number: int


@dataclass(frozen=True, slots=True)
class Freeze:
    """An operator's word that nothing of a producer lands. `lost_snapshot_id`: its last snapshot
    when that was behind a rollback.
    """

    why: str
    since_ms: int
    lost_snapshot_id: int | None = None


@dataclass(frozen=True, slots=True)
class ProducerEntry:
    """All that is remembered of one producer. `latest` are the epochs that landed last, newest
    first: two of them, and all whose requests may still be in the inbox. So whatever becomes of the
    table's history, a request that a crash has left there is known to have landed.
    `one_shot_ms`: the latest nonce time of a one-shot producer, 0 while nothing has landed; None
    for any other. `accepted`: (epoch, attempt) pairs that an operator lets land; landing uses one
    up.
    """

    table_uuid: UUID
    epochs: EpochRanges = EpochRanges()
    latest: tuple[Landed, ...] = ()
    sequential: bool = False
    one_shot_ms: int | None = None
    frozen: Freeze | None = None
    accepted: tuple[tuple[int, UUID], ...] = ()
    name: str = ""
    """The producer's name for people, such as that of a streaming query: for display only."""

    @property
    def one_shot(self) -> bool:
        return self.one_shot_ms is not None

    def is_own(self, producer: str) -> bool:
        """Return whether this entry, of this producer, is of a request of Frazil's own. Nobody
        sends such a request again, so that a rollback leaves nothing to decide about it."""
        return self.one_shot and producer.startswith((OPERATOR_PREFIX, UPKEEP_PREFIX))

    @property
    def has_landed(self) -> bool:
        """Whether anything of the producer has. An operator's word makes entries before that."""
        return bool(self.epochs.ranges or self.one_shot_ms)

    def landed(self, epoch: int) -> Landed | None:
        """Return the details of an epoch, if they are still remembered."""
        return next((landed for landed in self.latest if landed.epoch == epoch), None)

    def with_landed(self, *landed: Landed) -> ProducerEntry:
        """Add epochs that have landed, in their order."""
        epochs = self.epochs
        for one in landed:
            epochs = epochs.with_epoch(one.epoch)
        attempts = {one.attempt for one in landed}
        return replace(
            self,
            epochs=epochs,
            latest=(*reversed(landed), *self.latest)[:LATEST_MAX],
            accepted=tuple(one for one in self.accepted if one[1] not in attempts),
        )

    def without_settled(self, attempts: Container[UUID]) -> ProducerEntry:
        """Remove the details of these attempts, whose requests have left the inbox. The last epochs
        keep theirs, and those of an epoch that an operator let land again are removed together: the
        older content alone would deny the newer.
        """
        last, others = self.latest[:LATEST_MIN], self.latest[LATEST_MIN:]
        needed = {one.epoch for one in others if one.attempt not in attempts}
        kept = tuple(one for one in others if one.epoch in needed)
        return self if len(kept) == len(others) else replace(self, latest=last + kept)

    def with_promises(self, *, sequential: bool, one_shot_ms: int | None) -> ProducerEntry:
        """Keep only the promises that every request of the producer has made. On a promise that it
        breaks its entry would be dropped, or its gaps closed, while it still publishes.
        `one_shot_ms`: when its nonce was made, if it is a one-shot producer.
        """
        kept_ms = self.one_shot_ms
        is_one_shot = kept_ms is not None and one_shot_ms is not None
        newest_ms = max(kept_ms or 0, one_shot_ms or 0) if is_one_shot else None
        if newest_ms == kept_ms and (sequential or not self.sequential):
            return self
        return replace(self, sequential=self.sequential and sequential, one_shot_ms=newest_ms)

    def with_name(self, name: str | None) -> ProducerEntry:
        """Set the name; the one that a producer gave last stays."""
        return replace(self, name=name) if name else self

    def without_gaps(self, below: int) -> ProducerEntry:
        return replace(self, epochs=self.epochs.without_gaps(below))


def short_fingerprint(value: str) -> str:
    """Hash a fingerprint's value to 64 bits:
    enough to tell two offsets apart, short enough to keep."""
    return blake2b(value.encode(), digest_size=8).hexdigest()


def property_key(producer: str, branch: str = MAIN) -> str:
    """Return the table property of a producer on a branch."""
    if branch == MAIN:
        return f"{LEDGER_PREFIX}.{producer}"
    return f"{LEDGER_PREFIX}@{quote(branch, safe='').replace('.', '%2E')}.{producer}"


def parse_property_key(key: str) -> tuple[str, str] | None:
    """Parse a ledger property's key to `(producer, branch)`; None for any other property."""
    if key.startswith(LEDGER_PREFIX + "."):
        return key[len(LEDGER_PREFIX) + 1 :], MAIN
    if key.startswith(LEDGER_PREFIX + "@"):
        branch, _, producer = key[len(LEDGER_PREFIX) + 1 :].partition(".")
        return producer, unquote(branch)
    return None


def print_entry(entry: ProducerEntry) -> str:
    """Print the property's text: some two hundred bytes."""
    fields: dict[str, object] = {
        "v": FROZEN_ENTRY_VERSION if entry.frozen else ENTRY_VERSION,
        "table": str(entry.table_uuid),
        "epochs": str(entry.epochs),
        "latest": _print_latest(entry.latest),
    }
    if entry.sequential:
        fields["sequential"] = True
    if entry.one_shot_ms is not None:
        fields["one-shot-ms"] = entry.one_shot_ms
    if entry.name:
        fields["name"] = entry.name
    if entry.frozen:
        fields["frozen"] = _print_freeze(entry.frozen)
    if entry.accepted:
        fields["accepted"] = [[epoch, attempt.hex] for epoch, attempt in entry.accepted]
    return orjson.dumps(fields).decode()


def _print_latest(latest: Iterable[Landed]) -> list[list[object]]:
    """Group the epochs that landed in one snapshot: a batch may have many of one producer."""
    groups = groupby(
        latest, lambda one: (one.snapshot_id, one.sequence_number, one.fingerprint_kind)
    )
    return [
        [*place, *(part for one in together for part in _print_landed(one))]
        for place, together in groups
    ]


def _print_landed(landed: Landed) -> tuple[int, str, str]:
    return landed.epoch, landed.fingerprint, landed.attempt.hex


def _parse_latest(groups: Iterable[list[object]]) -> Iterator[Landed]:
    for snapshot, number, kind, *parts in groups:
        place = int(str(snapshot)), int(str(number))
        for epoch, value, attempt in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
            yield Landed(int(str(epoch)), str(kind), str(value), UUID(str(attempt)), *place)


def _print_freeze(freeze: Freeze) -> dict[str, object]:
    fields: dict[str, object] = {"why": freeze.why, "since-ms": freeze.since_ms}
    if freeze.lost_snapshot_id is not None:
        fields["lost-snapshot-id"] = freeze.lost_snapshot_id
    return fields


def _parse_freeze(fields: dict[str, object]) -> Freeze:
    lost = fields.get("lost-snapshot-id")
    return Freeze(
        str(fields["why"]), int(str(fields["since-ms"])), None if lost is None else int(str(lost))
    )


def parse_entry(text: str) -> ProducerEntry:
    """Parse an entry: the inverse of `print_entry`.
    Errors: `InvalidMetadataError`, also for a newer version."""
    try:
        fields = orjson.loads(text)
        if fields["v"] not in (ENTRY_VERSION, FROZEN_ENTRY_VERSION):
            raise InvalidMetadataError(
                f"ledger entry of version {fields['v']}, this version reads {ENTRY_VERSION} and"
                f" {FROZEN_ENTRY_VERSION}"
            )
        return ProducerEntry(
            table_uuid=UUID(fields["table"]),
            epochs=EpochRanges.parse(fields["epochs"]),
            latest=tuple(_parse_latest(fields["latest"])),
            sequential=bool(fields.get("sequential", False)),
            one_shot_ms=None if (made_ms := fields.get("one-shot-ms")) is None else int(made_ms),
            name=str(fields.get("name", "")),
            frozen=_parse_freeze(fields["frozen"]) if fields["v"] != ENTRY_VERSION else None,
            accepted=tuple(
                (int(epoch), UUID(attempt)) for epoch, attempt in fields.get("accepted", ())
            ),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidMetadataError(f"not a ledger entry: {type(error).__name__}") from error
