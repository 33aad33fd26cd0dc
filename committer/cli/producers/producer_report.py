"""Producers of a table as commands print them, and the text about the effect of a decision."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import cast

import orjson
import typer

from committer.cli.context.operator_audit import audit_trail
from committer.cli.output.describe import Description
from committer.cli.output.printing import json_line, time_text
from committer.cli.output.view import Facts
from committer.errors import InvalidRequestError, NotFoundError
from committer.ledger_entry import EpochRanges
from committer.plan.ledger.ledger import read_ledger
from committer.plan.ledger.producer_decisions import (
    ProducerName,
    ProducerState,
    ProducerStatus,
    epochs_text,
    standing,
    standings,
)
from committer.request.table_identifier import TableIdentifier
from committer.service.admin.producer_admin import Lost, ProducerAdmin, require_known_branch
from committer.service.admin.recorded_change import Change
from committer.service.admin.recorded_change import Facts as AuditFacts
from committer.service.process.composition import Parts

_RANGES = re.compile(r"[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*")


def operator(parts: Parts) -> ProducerAdmin:
    """Return the service that carries out the decisions of a command."""
    return ProducerAdmin(
        catalog=parts.catalog,
        storage=parts.storage,
        replays=parts.replays,
        high_water_marks=parts.high_water_marks,
        world=parts.world,
    )


@dataclass(frozen=True, slots=True)
class Found:
    """A producer with all that a decision about it rests on."""

    table: TableIdentifier
    standing: ProducerStatus
    lost: Lost
    waiting: int
    quarantined: int
    stopped_at: int | None = None
    """The epoch in quarantine that holds the later ones of an ordered producer."""

    @property
    def is_active(self) -> bool:
        return self.standing.state is ProducerState.ACTIVE

    @property
    def is_rolled_back(self) -> bool:
        return self.standing.state is ProducerState.ROLLED_BACK

    def describe(self) -> Description:
        return {
            **describe(self.table, self.standing),
            "rolled_back_epochs": str(self.lost.epochs),
            "rolled_back_snapshots": self.lost.snapshots,
            "rolled_back_is_whole": self.lost.is_whole,
            "waiting_requests": self.waiting,
            "quarantined_requests": self.quarantined,
            "stopped_at_epoch": "" if self.stopped_at is None else self.stopped_at,
            "advice": advice(self),
        }

    def view(self) -> Facts:
        facts = self.describe()
        frozen = facts.pop("frozen_at_ms")
        facts["frozen"] = time_text(cast("int | None", frozen))
        shown = {name.replace("_", " "): value for name, value in facts.items() if value != ""}
        return Facts(f"{self.standing.name.producer} of {self.table}", shown)


async def list_producers(
    parts: Parts, table: TableIdentifier, branch: str | None
) -> list[ProducerStatus]:
    """Return the producers of a table, on one branch if it is named.
    Errors: `NotFoundError`; those of the catalog.
    """
    loaded = await parts.catalog.load(table)
    found = standings(read_ledger(loaded.metadata))
    if branch is None:
        return found
    require_known_branch(loaded, branch)
    return [one for one in found if one.name.branch == branch]


async def find(parts: Parts, table: TableIdentifier, name: ProducerName) -> Found:
    """Find one producer. Errors: `NotFoundError`; those of catalog and storage."""
    loaded = await parts.catalog.load(table)
    desk, table_uuid = operator(parts), loaded.metadata.require_uuid()
    standing = await desk.standing(loaded, name)
    quarantined = [one.key async for one in parts.quarantine.list(table_uuid, name.producer)]
    return Found(
        table,
        standing,
        await desk.lost(loaded, name),
        len([one async for one in parts.inbox.list(table_uuid, name.producer)]),
        len(quarantined),
        await _stopped_at(parts, quarantined),
    )


@asynccontextmanager
async def recorded_on_producer(
    parts: Parts, action: str, table: TableIdentifier, name: ProducerName, reason: str | None
) -> AsyncIterator[None]:
    """Record what the block changes of a producer: its entry in the ledger, before and after."""
    loaded = await parts.catalog.load(table)
    change = Change(
        action,
        table=str(table),
        table_uuid=str(loaded.metadata.table_uuid),
        branch=name.branch,
        producer=name.producer,
        before=_facts(table, standing(read_ledger(loaded.metadata), name)),
    )
    async with audit_trail(parts, reason).recorded(change):
        yield
        after = read_ledger((await parts.catalog.load(table)).metadata)
        change.after = _facts(table, standing(after, name))


def _facts(table: TableIdentifier, status: ProducerStatus) -> AuditFacts:
    facts: AuditFacts = orjson.loads(json_line(describe(table, status)))
    return facts


async def require_lost(
    parts: Parts, table: TableIdentifier, name: ProducerName, again: EpochRanges
) -> None:
    """Refuse epochs that may not land once more. Errors: as `ProducerAdmin.require_lost`."""
    if again.ranges:
        await operator(parts).require_lost(await parts.catalog.load(table), name, again)


async def _stopped_at(parts: Parts, quarantined: Sequence[str]) -> int | None:
    """Return the lowest epoch that was kept of an ordered producer."""
    for key in quarantined:
        try:
            request = (await parts.replays.get(key))[0].request
        except (InvalidRequestError, NotFoundError):
            continue
        return request.epoch if request.producer.ordered else None
    return None


def describe(table: TableIdentifier, standing: ProducerStatus) -> Description:
    entry = standing.entry
    latest = entry.latest[0] if entry and entry.latest else None
    return {
        "table": str(table),
        "producer": standing.name.producer,
        "query_name": entry.name if entry else "",
        "branch": standing.name.branch,
        "state": standing.state,
        "reason": standing.why or "",
        "frozen_at_ms": entry.frozen.since_ms if entry and entry.frozen else None,
        "last_epoch": entry.epochs.highest if entry else None,
        "epochs": str(entry.epochs) if entry else "",
        "snapshot_id": latest.snapshot_id if latest else None,
        "sequence_number": latest.sequence_number if latest else None,
        "sequential": entry.sequential if entry else None,
        "one_shot": entry.one_shot if entry else None,
        "accepted": [f"{epoch}/{attempt}" for epoch, attempt in entry.accepted] if entry else [],
    }


def advice(found: Found) -> str:
    """Return what an operator does about it, in one sentence; empty where that is nothing."""
    match found.standing.state:
        case ProducerState.ACTIVE if found.stopped_at is not None:
            return (
                f"Epoch {found.stopped_at} holds the later ones: `frazil quarantine replay` it, or"
                " `discard` it."
            )
        case ProducerState.ACTIVE:
            return ""
        case ProducerState.FROZEN:
            return "`frazil producer thaw` lets it go on; then replay what is in quarantine."
        case ProducerState.ROLLED_BACK:
            return (
                "Bring the history back, or go on from what is left: `frazil producer thaw` with"
                " --skip-lost (lost epochs never land) or --redo-lost (they may land once more)."
            )
        case ProducerState.UNREADABLE:
            return "Upgrade to a release that reads its entry, or `frazil producer forget` it."


def choose_epochs(found: Found, *, skip: bool, redo: bool, epochs: str | None) -> EpochRanges:
    """Choose the epochs that may land again.
    Errors: `typer.BadParameter` where the choice is open."""
    if epochs is not None:
        if not redo:
            raise typer.BadParameter("--epochs needs --redo-lost: it names the epochs to redo")
        return _parse(epochs)
    if not found.is_rolled_back:
        if redo:
            raise typer.BadParameter("no epoch is lost by a rollback: name --epochs")
        return EpochRanges()
    if not redo and not skip:
        raise typer.BadParameter(
            f"a rollback took {_lost(found.lost)}: --skip-lost (they never land) or --redo-lost"
            " (they may land once more)?"
        )
    if redo and not found.lost.is_whole:
        raise typer.BadParameter(
            f"a rollback took {_lost(found.lost)}: not all of it is known any more, so name"
            " --epochs"
        )
    return found.lost.epochs if redo else EpochRanges()


def _parse(text: str) -> EpochRanges:
    if not _RANGES.fullmatch(text):
        raise typer.BadParameter(f"--epochs: expected epochs such as 40-42,44, found `{text}`")
    try:
        return EpochRanges.parse(text)
    except ValueError as error:
        raise typer.BadParameter(f"--epochs: {error}") from None


def _lost(lost: Lost) -> str:
    epochs = epochs_text(lost.epochs) if lost.epochs.ranges else "no epoch that is known"
    return epochs if lost.is_whole else f"{epochs}, perhaps more"


def what_follows(found: Found, again: EpochRanges) -> str:
    """Return the effect of a thaw on the epochs; empty where it has none."""
    if again.ranges:
        said = epochs_text(again)
        them = "they are" if said.startswith("epochs") else "it is"
        return (
            f"{said.capitalize()} may land once more, when {them} published or replayed. Do not"
            " bring the rolled back snapshots back then: their rows would be in the table twice."
        )
    if not found.is_rolled_back:
        return ""
    return (
        f"The rollback took {_lost(found.lost)}. Lost epochs count as landed, and their rows stay"
        " away: one that is published again goes to quarantine."
    )
