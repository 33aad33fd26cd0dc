"""Collects the report of `frazil status`. A part that does not answer becomes a condition in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar, cast
from uuid import UUID

from committer.cli.committers.committer_status import members_text
from committer.cli.context.common_options import list_tables
from committer.cli.output.describe import Description
from committer.cli.output.printing import age_text, counted
from committer.cli.output.view import Facts, Rows, View
from committer.errors import FrazilError, NotFoundError, SettingsError
from committer.group_commit import finish_in_turns
from committer.ledger_entry import ProducerEntry
from committer.plan.ledger.ledger import read_ledger
from committer.plan.ledger.producer_decisions import ProducerName, standings
from committer.ports.catalog import Catalog
from committer.ports.leases import Member
from committer.ports.pointer_swap import LoadedTable
from committer.ports.queue import QueueDepth
from committer.request.commit_request import REQUEST_BYTES_MAX
from committer.request.table_identifier import TableIdentifier
from committer.service.process.composition import RequestParts, open_known_catalog, queue_url
from committer.service.process.status_model import MemberStatus, member_statuses
from committer.service.requests.inbox_keys import parsed
from committer.service.sharding.shard_leases import FOREIGN
from committer.storage.inbox.inbox import RECORD_BYTES_MAX, Outstanding, Quarantine, skips_of
from committer.url_text import without_secrets

T = TypeVar("T")
_LOADS_AT_ONCE = 16
_READS_AT_ONCE = 32


@dataclass(slots=True)
class Waiting:
    """Outstanding requests of one producer of one table."""

    requests: int = 0
    size_bytes: int = 0
    oldest_ms: int | None = None

    def add(self, found: Outstanding) -> None:
        self.requests += 1
        self.size_bytes += found.size_bytes
        oldest = self.oldest_ms
        self.oldest_ms = found.modified_ms if oldest is None else min(oldest, found.modified_ms)


@dataclass(frozen=True, slots=True)
class LandedProducer:
    """The entry of one producer on one branch in the ledger of one table."""

    table: TableIdentifier
    name: ProducerName
    entry: ProducerEntry


@dataclass(slots=True)
class Report:
    """The whole report. A field is None where its part did not answer."""

    now_ms: int
    catalog_uri: str
    inbox: str
    queue: str | None
    depth: QueueDepth | None = None
    members: list[MemberStatus] | None = None
    waiting: dict[tuple[str, str], Waiting] | None = None
    quarantined: int | None = None
    tables: dict[str, TableIdentifier] | None = None
    table_count: int | None = None
    has_no_catalog: bool = False
    landed: list[LandedProducer] = field(default_factory=list)
    conditions: dict[str, str] = field(default_factory=dict)

    @property
    def total(self) -> Waiting:
        found = list((self.waiting or {}).values())
        ages = [one.oldest_ms for one in found if one.oldest_ms is not None]
        return Waiting(
            sum(one.requests for one in found),
            sum(one.size_bytes for one in found),
            min(ages, default=None),
        )


async def collect(
    parts: RequestParts, wanted: TableIdentifier | None, *, is_brief: bool = False
) -> Report:
    """Ask all parts. Requests of one table are found by its uuid, which the catalog knows.
    `is_brief`: the catalog's tables are counted, and none but `wanted` is loaded.

    Errors: `NoSuchTableError` if there is no such table.
    """
    url = queue_url(parts.settings)
    report = Report(
        parts.world.now_ms(),
        parts.settings.catalog.all_properties.shown_place,
        parts.settings.inbox,
        without_secrets(url) if url else None,
    )
    await _ask("catalog", _collect_tables(parts, wanted, report, is_brief=is_brief), report)
    only = _uuid_of(wanted, report)
    if wanted is None or only is not None:
        report.waiting = await _ask(
            "inbox", _group(parts.inbox.list(only, skips=skips_of(only))), report
        )
        report.quarantined = await _ask("inbox", _count_quarantined(parts.quarantine, only), report)
    if parts.queue is not None:
        report.depth = await _ask("queue", parts.queue.depth(), report)
    if parts.leases is not None:
        seen = await _ask("queue", parts.leases.look(), report)
        report.members = None if seen is None else member_statuses(seen)
        if seen is not None and seen.refused:
            report.conditions[FOREIGN] = _refused(seen.refused)
        if parts.settings.queue.url == "private" and "queue" in report.conditions:
            report.conditions["queue"] += " (a private queue runs while `frazil serve` runs)"
    return report


def _refused(members: Sequence[Member]) -> str:
    named = ", ".join(f"`{one.name}` ({one.installation})" for one in members)
    return f"refused by the other committers of this queue, and without a shard: {named}"


async def _ask(component: str, question: Coroutine[object, object, T], report: Report) -> T | None:
    try:
        return await question
    except (NotFoundError, SettingsError):
        raise
    except FrazilError as error:
        report.conditions.setdefault(component, str(error))
        return None


def _uuid_of(wanted: TableIdentifier | None, report: Report) -> UUID | None:
    names = (report.tables or {}).items()
    return next((UUID(uuid) for uuid, name in names if name == wanted), None)


async def _group(listed: AsyncIterator[Outstanding]) -> dict[tuple[str, str], Waiting]:
    groups: dict[tuple[str, str], Waiting] = {}
    async for found in listed:
        if found.size_bytes > REQUEST_BYTES_MAX:
            continue  # in quarantine by reference, or soon
        key = parsed(found.key)
        group = (str(key.table_uuid), key.producer) if key else ("", found.key)
        groups.setdefault(group, Waiting()).add(found)
    return groups


async def _count_quarantined(quarantine: Quarantine, table_uuid: UUID | None) -> int:
    """Count the requests in quarantine. Small objects are read: they may be answers, of which no
    request is kept.
    """
    listed = [one async for one in quarantine.list(table_uuid, skips=skips_of(table_uuid))]
    small = [one for one in listed if one.size_bytes <= RECORD_BYTES_MAX]
    answers = await finish_in_turns(quarantine.is_told_only, small, at_once_max=_READS_AT_ONCE)
    return len(listed) - sum(answers)


# --- Tables --------------------------------------------------------------------------------------


async def _collect_tables(
    parts: RequestParts, wanted: TableIdentifier | None, report: Report, *, is_brief: bool
) -> None:
    try:
        catalog = await open_known_catalog(parts, create=False)
    except NotFoundError as error:
        report.conditions["catalog"], report.has_no_catalog = str(error), True
        return
    try:
        if wanted is not None:
            loaded: list[LoadedTable | None] = [await catalog.load(wanted)]
            report.table_count = 1
        else:
            names = await list_tables(catalog)
            report.table_count = len(names)
            load, loads = partial(_load, catalog, report), [] if is_brief else names
            loaded = await finish_in_turns(load, loads, at_once_max=_LOADS_AT_ONCE)
    finally:
        await catalog.close()
    tables = [table for table in loaded if table is not None]
    report.tables = {str(table.metadata.table_uuid): table.identifier for table in tables}
    report.landed = [landed for table in tables for landed in _landed(table)]


async def _load(catalog: Catalog, report: Report, name: TableIdentifier) -> LoadedTable | None:
    """Load a table; None if it cannot be read, or was dropped meanwhile."""
    with suppress(NotFoundError):
        return await _ask(f"table {name}", catalog.load(name), report)
    return None


def _landed(table: LoadedTable) -> list[LandedProducer]:
    """Return the entries of the ledger without those that are unreadable."""
    found = [
        LandedProducer(table.identifier, one.name, one.entry)
        for one in standings(read_ledger(table.metadata))
        if one.entry is not None
    ]
    return sorted(found, key=lambda one: (one.name.producer, one.name.branch))


# --- As JSON, and for people ---------------------------------------------------------------------


def describe(report: Report) -> Description:
    """Describe a report as one object; a part that did not answer is null and has a condition."""
    depth, total = report.depth, report.total
    return {
        "queue": {
            "server": report.queue,
            "waiting": depth.waiting if depth else None,
            "pending": depth.pending if depth else None,
        },
        "committers": None
        if report.members is None
        else [one.model_dump() for one in report.members],
        "catalog": {
            "uri": report.catalog_uri,
            "tables": report.table_count,
        },
        "inbox": None
        if report.waiting is None
        else {
            "location": report.inbox,
            "requests": total.requests,
            "bytes": total.size_bytes,
            "oldest_age_ms": _age_ms(total, report),
        },
        "quarantined": report.quarantined,
        "outstanding": [
            {
                "table": _name(uuid, report),
                "table_uuid": uuid or None,
                "producer": producer,
                "requests": waiting.requests,
                "bytes": waiting.size_bytes,
                "oldest_age_ms": _age_ms(waiting, report),
            }
            for (uuid, producer), waiting in (report.waiting or {}).items()
        ],
        "producers": [_describe_producer(landed) for landed in report.landed],
    }


def _describe_producer(landed: LandedProducer) -> Description:
    latest = landed.entry.latest[0] if landed.entry.latest else None
    return {
        "table": str(landed.table),
        "table_uuid": landed.entry.table_uuid,
        "producer": landed.name.producer,
        "query_name": landed.entry.name or None,
        "branch": landed.name.branch,
        "last_epoch": landed.entry.epochs.highest,
        "epochs": str(landed.entry.epochs),
        "snapshot_id": latest.snapshot_id if latest else None,
        "sequence_number": latest.sequence_number if latest else None,
    }


def _age_ms(waiting: Waiting, report: Report) -> int | None:
    oldest = waiting.oldest_ms
    return None if oldest is None else max(0, report.now_ms - oldest)


def _name(table_uuid: str, report: Report) -> str | None:
    name = (report.tables or {}).get(table_uuid)
    return None if name is None else str(name)


def brief_facts(report: Report) -> Description:
    """Return the state of all parts, a line for each."""
    return _facts(report, {"shards": ""})


def views(report: Report, committer: Description) -> list[View]:
    """Show a report. `committer`: what it says of itself;
    the numbers are those that were looked up now."""
    shown: list[View] = [Facts("status", {**committer, **_facts(report, committer)})]
    if report.waiting:
        shown.append(
            Rows(
                "waiting in the inbox",
                ("table", "producer", "query", "requests", "bytes", "oldest"),
                [
                    (
                        _name(uuid, report) or uuid or "(not an inbox key)",
                        producer,
                        _query(uuid, producer, report),
                        waiting.requests,
                        waiting.size_bytes,
                        age_text(_age_ms(waiting, report)),
                    )
                    for (uuid, producer), waiting in report.waiting.items()
                ],
            )
        )
    if report.landed:
        shown.append(Rows("landed, by the ledgers of the tables", _LANDED, _landed_rows(report)))
    return shown


_LANDED = ("table", "producer", "query", "branch", "last epoch", "epochs", "snapshot id", "seq")


def _landed_rows(report: Report) -> list[tuple[object, ...]]:
    """Return a row for each producer; those that write once share one for each table and branch."""
    rows: list[tuple[object, ...]] = []
    one_shot: dict[tuple[str, str], list[Description]] = {}
    for landed in report.landed:
        found = _describe_producer(landed)
        place = found["snapshot_id"], found["sequence_number"]
        if landed.entry.one_shot:
            one_shot.setdefault((str(landed.table), landed.name.branch), []).append(found)
            continue
        epochs = found["last_epoch"], found["epochs"]
        name = (landed.name.producer, landed.entry.name, landed.name.branch)
        rows.append((str(landed.table), *name, *epochs, *place))
    for (table, branch), found_once in one_shot.items():
        last = max(found_once, key=lambda one: cast(int, one["sequence_number"] or 0))
        place = last["snapshot_id"], last["sequence_number"]
        writes, names = counted(len(found_once), "one-shot write"), _names(found_once)
        rows.append((table, writes, names, branch, "", "", *place))
    return rows


def _names(producers: Sequence[Description]) -> str:
    """Return one name, and how many others there are:
    those of jobs may be as many as their runs."""
    names = sorted({str(one["query_name"]) for one in producers if one["query_name"]})
    others = f" and {counted(len(names) - 1, 'other')}" if len(names) > 1 else ""
    return f"{names[0]}{others}" if names else ""


def _query(table_uuid: str, producer: str, report: Report) -> str:
    """Return the producer's name in the ledger; empty before its first epoch has landed."""
    names = (
        one.entry.name
        for one in report.landed
        if (str(one.entry.table_uuid), one.name.producer) == (table_uuid, producer)
    )
    return next(filter(None, names), "")


def _unknown(report: Report) -> str:
    """Return why a number is unknown: a table without a known uuid has no requests to ask for."""
    return "no answer" if "inbox" in report.conditions else "not asked"


def _facts(report: Report, committer: Description) -> Description:
    depth, total = report.depth, report.total
    facts: Description = {} if "shards" in committer else {"shards": _shards_text(report)}
    oldest = age_text(_age_ms(total, report))
    waiting = counted(total.requests, "request") + (f", the oldest for {oldest}" if oldest else "")
    return {
        **facts,
        "catalog": f"{report.catalog_uri}: " + _tables_text(report),
        "inbox": f"{report.inbox}: " + (_unknown(report) if report.waiting is None else waiting),
        "queue": "none"
        if report.queue is None
        else f"{report.queue}: {depth.waiting} waiting, {depth.pending} of them handed out"
        if depth
        else f"{report.queue}: no answer",
        "quarantine": "not known"
        if report.quarantined is None
        else counted(report.quarantined, "request"),
    }


def _tables_text(report: Report) -> str:
    if report.table_count is not None:
        return counted(report.table_count, "table")
    return "not there yet" if report.has_no_catalog else "no answer"


def _shards_text(report: Report) -> str:
    if report.members is None:
        return "not known"
    return members_text(report.members) or "no committer has any"
