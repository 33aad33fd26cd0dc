"""Requests in quarantine: finding, filtering and replaying them. No printing here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from committer.cli.context.operator_audit import audit_trail
from committer.cli.output.describe import Description
from committer.cli.producers.producer_report import operator
from committer.cli.producers.quarantine_filters import Filters
from committer.errors import (
    FrazilError,
    InvalidRequestError,
    NotFoundError,
    UnsupportedError,
)
from committer.group_commit import finish_in_turns
from committer.plan.ledger.producer_decisions import ACCEPTABLE, ProducerName
from committer.ports.queue import Doorbell
from committer.reason import Reason
from committer.request.commit_request import CommitRequest
from committer.request.request_format import EncodedRequest, line_digest
from committer.request.request_key import RequestKey
from committer.request.table_identifier import TableIdentifier
from committer.service.admin.data_file_check import absent_data_file
from committer.service.admin.recorded_change import Change
from committer.service.process.composition import Parts, RequestParts
from committer.service.requests.inbox_keys import parsed
from committer.storage.inbox.inbox import Outstanding, QuarantineRecord, read_quarantined

_READS_AT_ONCE = 32
# Requests that one object of the audit is about: an interrupted command knows the end of the rest.
_RECORDED_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Quarantined:
    """One request in quarantine, from its record."""

    key: str
    record: QuarantineRecord
    size_bytes: int

    @property
    def parsed_key(self) -> RequestKey | None:
        return parsed(self.key)

    @property
    def table_uuid(self) -> str | None:
        return str(self.parsed_key.table_uuid) if self.parsed_key else None

    @property
    def producer(self) -> str | None:
        return self.parsed_key.producer if self.parsed_key else None

    def is_meant(self, filters: Filters, now_ms: int) -> bool:
        age_ms = now_ms - self.record.quarantined_at_ms
        return (
            filters.table in (None, self.record.table, self.table_uuid)
            and filters.producer in (None, self.producer)
            and filters.code in (None, self.record.reason)
            and (filters.older_than_ms is None or age_ms > filters.older_than_ms)
            and (filters.younger_than_ms is None or age_ms < filters.younger_than_ms)
        )

    def describe(self) -> Description:
        key = self.parsed_key
        return {
            "key": self.key,
            "inbox_key": self.record.key,
            "table": self.record.table,
            "table_uuid": self.table_uuid,
            "producer": self.producer,
            "epoch": key.epoch if key else None,
            "attempt": key.attempt if key else None,
            "reason": self.record.reason,
            "message": self.record.message,
            **explanation(self.record.reason, is_answer=self.record.is_told_only),
            "quarantined_at_ms": self.record.quarantined_at_ms,
            "kept_until_ms": self.record.kept_until_ms,
            "bytes": self.size_bytes,
        }


def explanation(reason: str, *, is_answer: bool = False) -> dict[str, str]:
    """Return what is wrong with such requests, and what to do about it; both are empty for a code
    of another version. `is_answer`: no request is kept.
    """
    if is_answer:
        return {
            "meaning": "It was refused, and only the answer is kept: no request.",
            "advice": "Nothing: its client runs again.",
        }
    known = next((code for code in Reason if code.value == reason), None)
    return {"meaning": known.meaning if known else "", "advice": known.advice if known else ""}


async def find_all(
    parts: RequestParts, filters: Filters, *, answers: bool = False
) -> list[Quarantined]:
    """Find all requests that the filters accept, in ascending order of key. `answers`: find
    instead the answers of which no request is kept.
    """
    listed = [one async for one in parts.quarantine.list()]
    found = await finish_in_turns(partial(_read, parts), listed, at_once_max=_READS_AT_ONCE)
    now_ms = parts.world.now_ms()
    return [
        one
        for one in _named(one for one in found if one is not None)
        if one.record.is_told_only is answers and one.is_meant(filters, now_ms)
    ]


def _named(quarantined: Iterable[Quarantined]) -> list[Quarantined]:
    """Name the tables of requests that cannot be read by the other requests of their tables."""
    listed = list(quarantined)
    names = {one.table_uuid: one.record.table for one in listed if one.record.table}
    return [
        replace(one, record=one.record.model_copy(update={"table": names.get(one.table_uuid)}))
        if one.record.table is None
        else one
        for one in listed
    ]


async def _read(parts: RequestParts, listed: Outstanding) -> Quarantined | None:
    """Read a request; None if it is no longer there.
    One without a readable record is shown all the same."""
    try:
        record = await parts.quarantine.record(listed.key)
    except NotFoundError:
        return None
    except InvalidRequestError as error:
        record = QuarantineRecord(
            key=listed.key,
            reason=Reason.REQUEST_MALFORMED,
            message=str(error),
            quarantined_at_ms=listed.modified_ms,
        )
    return Quarantined(listed.key, record, listed.size_bytes)


async def find_keys(parts: RequestParts, abbreviations: Sequence[str]) -> list[str]:
    """Find the keys that are meant. Errors: `NotFoundError` for none, or more than one."""
    keys = {listed.key async for listed in parts.quarantine.list()}
    return [choose_key(text, keys) for text in abbreviations]


def choose_key(text: str, keys: Iterable[str]) -> str:
    """Find the key itself, or the only one that starts or ends so, or whose attempt starts so."""
    known = sorted(keys)
    if text in known:
        return text
    fitting = [
        key
        for key in known
        if text
        and (key.startswith(text) or key.endswith(text) or key.split("/")[-1].startswith(text))
    ]
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        raise NotFoundError(f"nothing in quarantine has the key `{text}`")
    shown = ", ".join(fitting[:3]) + (", …" if len(fitting) > 3 else "")
    raise NotFoundError(f"`{text}` fits {len(fitting)} requests in quarantine: {shown}")


@dataclass(frozen=True, slots=True)
class Replayed:
    """The outcome of a replay: in the inbox, or still in quarantine for a reason.

    `check_error`: why its data files could not be checked. `queue_error`: why no doorbell rang.
    """

    key: str
    refused: str | None = None
    check_error: str | None = None
    queue_error: str | None = None


async def replay_all(
    parts: RequestParts, keys: Sequence[str], reason: str | None
) -> list[Replayed]:
    """Replay each of these requests, and record it in the audit."""

    async def replay(group: Sequence[str]) -> AsyncIterator[Replayed]:
        for key in group:
            yield await _replay(parts, key)

    return await _recorded(parts, "quarantine replay", keys, reason, replay)


async def discard_all(
    parts: RequestParts,
    keys: Sequence[str],
    reason: str | None,
    *,
    discarded: Callable[[str], object],
) -> None:
    """Remove each of these requests for good, record it in the audit, and report its key."""

    async def discard(group: Sequence[str]) -> AsyncIterator[Replayed]:
        for key in group:
            await parts.replays.discard(key)
            discarded(key)
            yield Replayed(key)

    await _recorded(parts, "quarantine discard", keys, reason, discard)


async def _recorded(
    parts: RequestParts,
    action: str,
    keys: Sequence[str],
    reason: str | None,
    act: Callable[[Sequence[str]], AsyncIterator[Replayed]],
) -> list[Replayed]:
    """Act on the requests in their order, and record each with its quarantine record: one read more
    for each, and two objects of the audit for each five hundred.
    """
    outcomes: list[Replayed] = []
    for start in range(0, len(keys), _RECORDED_AT_ONCE):
        group = keys[start : start + _RECORDED_AT_ONCE]
        change_of = partial(_change, parts, action)
        changes = await finish_in_turns(change_of, group, at_once_max=_READS_AT_ONCE)
        async with audit_trail(parts, reason).recorded(*changes):
            remaining = iter(changes)
            async for outcome in act(group):
                change = next(remaining)
                change.refused, change.after = outcome.refused, {}
                outcomes.append(outcome)
    return outcomes


async def _change(parts: RequestParts, action: str, key: str) -> Change:
    """Return the change of one request, with the reason for which it is in quarantine."""
    place, record = parsed(key), await parts.quarantine.readable_record(key)
    change = Change(action, key=key)
    if place is not None:
        change.table_uuid, change.producer = str(place.table_uuid), place.producer
        change.epoch = place.epoch
    if record is not None:
        change.table = record.table
        change.before = {
            "quarantine_reason": record.reason,
            "message": record.message,
            "quarantined_at_ms": record.quarantined_at_ms,
        }
    return change


async def _replay(parts: RequestParts, key: str) -> Replayed:
    """Put a request back into the inbox, if its data files are there, and announce it,
    if the queue answers.
    """
    check_error = None
    try:
        sealed, _ = await parts.replays.get(key)
        try:
            absent = await absent_data_file(parts.storage, sealed)
        except FrazilError as error:
            absent, check_error = None, str(error)
        if absent is not None:
            return Replayed(key, refused=_without(absent))
        sealed = await parts.replays.replay(key, parts.world.uuid())
    except (InvalidRequestError, NotFoundError) as error:
        return Replayed(key, refused=str(error))
    return Replayed(key, check_error=check_error, queue_error=await _announce(parts, sealed))


def _without(data_file: str) -> str:
    return (
        f"its data file `{data_file}` does not exist (an orphan clean-up may have taken it), and"
        " readers of the table would fail: publish the micro-batch again, and discard this one"
    )


async def refusals(parts: Parts, keys: Sequence[str]) -> dict[str, str]:
    """Return the reason by key for those that --force cannot land now. Change nothing."""
    refused = await _ask_about(parts, keys, operator(parts).refusals)
    for key in keys:
        if key not in refused and (why := await _why_not_replayed(parts, key)) is not None:
            refused[key] = why
    return refused


async def accept(parts: Parts, keys: Sequence[str], reason: str | None) -> list[Replayed]:
    """Permit these requests to land although the ledger refuses them, replay them, and record both
    in the audit.
    """

    async def replay(group: Sequence[str]) -> AsyncIterator[Replayed]:
        refused = await _ask_about(parts, group, operator(parts).accept)
        for key in group:
            why = refused.get(key)
            yield await _replay(parts, key) if why is None else Replayed(key, refused=why)

    return await _recorded(parts, "quarantine replay --force", keys, reason, replay)


_Ask = Callable[[TableIdentifier, ProducerName, Sequence[CommitRequest]], Awaitable[dict[str, str]]]


async def _refused(
    ask: _Ask, table: TableIdentifier, name: ProducerName, meant: Sequence[EncodedRequest]
) -> dict[str, str]:
    """Return why not, by the key in quarantine, for those of one producer that are refused."""
    try:
        why = await ask(table, name, [sealed.request for sealed in meant])
    except (NotFoundError, UnsupportedError) as error:
        return {sealed.key: str(error) for sealed in meant}
    keys = {sealed.key: sealed.request.inbox_key for sealed in meant}
    return {key: why[published] for key, published in keys.items() if published in why}


async def _ask_about(parts: Parts, keys: Sequence[str], ask: _Ask) -> dict[str, str]:
    """Ask about the requests, those of one table and producer at once. Return why not, by key, for
    those that are refused, and for those that --force does not help.
    """
    refused: dict[str, str] = {}
    meant: defaultdict[tuple[TableIdentifier, ProducerName], list[EncodedRequest]]
    meant = defaultdict(list)
    for key in keys:
        try:
            sealed = await _acceptable(parts, key)
        except (InvalidRequestError, NotFoundError, UnsupportedError) as error:
            refused[key] = str(error)
        else:
            request = sealed.request
            name = ProducerName(request.producer.id, request.branch)
            meant[request.identifier, name].append(sealed)
    for (table, name), requests in meant.items():
        refused |= await _refused(ask, table, name, requests)
    return refused


async def _why_not_replayed(parts: Parts, key: str) -> str | None:
    """Return the reason for which a replay would refuse it; None if that cannot be found out."""
    try:
        sealed, _ = await parts.replays.get(key)
        absent = await absent_data_file(parts.storage, sealed)
    except FrazilError:
        return None
    return None if absent is None else _without(absent)


async def _acceptable(parts: Parts, key: str) -> EncodedRequest:
    """Return the request, if the ledger alone is against it.

    Errors: `UnsupportedError` for another reason; `InvalidRequestError`; `NotFoundError`.
    """
    sealed, kept = await parts.replays.get(key)
    record, _ = read_quarantined(kept, key)
    if record.reason not in ACCEPTABLE:
        codes = ", ".join(sorted(ACCEPTABLE))
        raise UnsupportedError(
            f"its reason is {record.reason}; --force lands requests of {codes} only: remove the"
            " cause, then replay it without --force"
        )
    return sealed


async def _announce(parts: RequestParts, sealed: EncodedRequest) -> str | None:
    """Announce a request, or return why not;
    then the committer finds it when it next lists the inbox."""
    if parts.queue is None:
        return None
    request = sealed.request
    bell = Doorbell(
        request.table_uuid, sealed.key, line_digest(sealed.content), sealed.content, reply_to=None
    )
    try:
        await parts.queue.announce([bell])
    except FrazilError as error:
        return str(error)
    return None
