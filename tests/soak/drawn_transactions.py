"""The transactions of a trial: many kinds of them, drawn by a seed, and how each must end."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from uuid import UUID

from committer.ports.pointer_swap import LoadedTable
from committer.ports.queue import Doorbell
from committer.request.request_format import EncodedRequest, line_digest
from committer.request.transaction import Transaction
from tests.support.builders.operation_requests import base_of, build_operation
from tests.support.builders.request_builders import build_file, build_line, build_manifest, seal
from tests.support.builders.transactions import build_transaction, in_transaction

PRODUCERS = 8
# Later than most transactions land, and much sooner than the others of its transaction give up.
LATE_S = 3.0
_SPREAD_S = 0.05
_SECOND_ATTEMPT_S = 0.5
_PARTITION = (0,)


class Kind(StrEnum):
    APPENDS = "appends"
    LATE = "appends, a member late but in time"
    RIVALS = "two that remove the same file"
    STALE = "rests on a snapshot that others have written since"
    MISSING = "a member is never published"
    MALFORMED = "a member names a branch that is not there"
    GARBLED = "a member that cannot be read"


LANDING = frozenset({Kind.APPENDS, Kind.LATE})


@dataclass(frozen=True, slots=True)
class Sending:
    """One object of the inbox, and its doorbell. `delay_s`: after the turn of its transaction."""

    delay_s: float
    bell: Doorbell
    content: bytes


@dataclass(slots=True)
class DrawnTransaction:
    """`paths`: of the data file that each attempt adds, by table; a member that removes only has
    none. `removed`: the file that it removes from a table, if it does. `rival`: the other one that
    removes the file; of the two one must land.
    """

    transaction: Transaction
    kind: Kind
    sendings: list[Sending] = field(default_factory=list)
    paths: dict[int, list[str]] = field(default_factory=dict)
    removed: tuple[int, str] | None = None
    rival: UUID | None = None
    has_second_attempts: bool = False

    @property
    def id(self) -> UUID:
        return self.transaction.id

    @property
    def duration_s(self) -> float:
        """The time from its turn until its last object is durable."""
        return max(sending.delay_s for sending in self.sendings)


def kinds(chance: random.Random, count: int) -> list[tuple[Kind, ...]]:
    """Return the kinds of so many transactions in a random order, rivals together: a third are in
    conflict, a sixth lack a member or have one that cannot land.
    """
    third = count // 3
    pairs = third // 3
    drawn: list[tuple[Kind, ...]] = [(Kind.RIVALS, Kind.RIVALS)] * pairs
    drawn += [(Kind.STALE,)] * (third - 2 * pairs)
    rest = count - third
    for kind in (Kind.MISSING, Kind.MALFORMED, Kind.GARBLED, Kind.LATE):
        drawn += [(kind,)] * (rest // 12)
    drawn += [(Kind.APPENDS,)] * (rest - 4 * (rest // 12))
    chance.shuffle(drawn)
    return drawn


def rivals_count(count: int) -> int:
    """Return how many pairs of rivals there are among so many transactions: each needs a file."""
    return count // 3 // 3


class Draw:
    """Draws transactions over all of the tables. `targets`: for each pair of rivals the table and
    the live file that both remove.
    """

    def __init__(
        self,
        seed: int,
        tables: Sequence[LoadedTable],
        targets: Sequence[tuple[int, str]],
        second_attempts_share: float,
    ) -> None:
        self._chance = random.Random(seed)
        self._tables = tables
        self._targets = iter(targets)
        self._second_attempts_share = second_attempts_share
        self._epochs = dict.fromkeys(range(PRODUCERS), 0)
        self._number = 0

    def transactions(self, count: int) -> Iterator[DrawnTransaction]:
        for group in kinds(self._chance, count):
            if group[0] is Kind.RIVALS:
                yield from self._rivals()
            else:
                yield self._draw(group[0])

    def _rivals(self) -> tuple[DrawnTransaction, DrawnTransaction]:
        target = next(self._targets)
        first, second = (self._draw(Kind.RIVALS, target) for _ in range(2))
        first.rival, second.rival = second.id, first.id
        return first, second

    def _draw(self, kind: Kind, target: tuple[int, str] | None = None) -> DrawnTransaction:
        chance = self._chance
        order = chance.sample(range(len(self._tables)), len(self._tables))
        transaction = build_transaction([self._tables[number] for number in order], id=self._uuid())
        drawn = DrawnTransaction(transaction, kind, removed=target)
        odd = target[0] if target else chance.choice(order)
        drawn.has_second_attempts = chance.random() < self._second_attempts_share
        producer = self._producer(kind)
        for number in chance.sample(order, len(order)):
            if kind is Kind.MISSING and number == odd:
                continue
            is_again = drawn.has_second_attempts and chance.random() < 2 / 3
            for again in range(1 + is_again):
                delay_s = chance.random() * (_SECOND_ATTEMPT_S if again else _SPREAD_S)
                if kind is Kind.LATE and number == odd:
                    delay_s += LATE_S
                member = self._member(drawn, number, producer, is_odd=number == odd)
                drawn.sendings.append(_sending(member, delay_s, kind, is_odd=number == odd))
        return drawn

    def _uuid(self) -> UUID:
        return UUID(int=self._chance.getrandbits(128), version=4)

    def _producer(self, kind: Kind) -> tuple[str, int]:
        """Return a producer and its epoch: one of its own where it may end in quarantine, so that
        no circuit breaker opens for the others.
        """
        self._number += 1
        if kind not in LANDING:
            return f"{kind.name.lower()}-{self._number}", 0
        number = self._number % PRODUCERS
        self._epochs[number] += 1
        return f"producer-{number}", self._epochs[number] - 1

    def _member(
        self, drawn: DrawnTransaction, number: int, producer: tuple[str, int], *, is_odd: bool
    ) -> EncodedRequest:
        """Build one attempt of a member; each call for the same member is another attempt."""
        table, (name, epoch) = self._tables[number], producer
        line: dict[str, Any] = {"producer": name, "epoch": epoch, "nonce": self._uuid()}
        line["sequential"] = False  # its epochs become durable in any order
        if is_odd and drawn.kind in (Kind.RIVALS, Kind.STALE):
            sealed = self._in_conflict(drawn, table, line)
        else:
            if is_odd and drawn.kind is Kind.MALFORMED:
                line["branch"] = "absent"
            request = build_line(table, **line)
            file = build_file(table.metadata, request.attempt, partition=_PARTITION)
            sealed = seal(request, [build_manifest(table.metadata, [file])])
        if sealed.request.manifests:
            attempt = sealed.request.attempt
            path = build_file(table.metadata, attempt, partition=_PARTITION).file_path
            drawn.paths.setdefault(number, []).append(path)
        return in_transaction(sealed, drawn.transaction)

    def _in_conflict(
        self, drawn: DrawnTransaction, table: LoadedTable, line: Mapping[str, Any]
    ) -> EncodedRequest:
        policy = self._chance.choice(("fail", "quarantine"))
        needs: dict[str, object] = {"on-conflict": policy}
        if drawn.removed is not None:
            needs["removed-data-files"] = [drawn.removed[1]]
        else:
            needs |= {**base_of(table.metadata), "isolation-level": "serializable"}
        is_delete = drawn.removed is not None and drawn.transaction.id.int % 2
        return build_operation(
            table,
            "delete" if is_delete else "overwrite",
            files_count=0 if is_delete else 1,
            partition=_PARTITION,
            needs=needs,
            **line,
        )


def _sending(sealed: EncodedRequest, delay_s: float, kind: Kind, *, is_odd: bool) -> Sending:
    content = sealed.content
    if kind is Kind.GARBLED and is_odd:
        content = b"{ this is no request\n"
    bell = Doorbell(
        sealed.request.table_uuid, sealed.key, line_digest(content), content, reply_to=None
    )
    return Sending(delay_s, bell, content)
