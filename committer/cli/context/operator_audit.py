"""The audit of commands: their `--reason`, who runs them, and the facts around a table's change."""

from __future__ import annotations

import os
import pwd
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from committer.errors import InvalidMetadataError, NotFoundError

if TYPE_CHECKING:
    from committer.request.table_identifier import TableIdentifier
    from committer.service.admin.recorded_change import AuditTrail, Change, Facts
    from committer.service.process.composition import Parts, RequestParts

ReasonOption = Annotated[
    str | None,
    typer.Option("--reason", metavar="TEXT", help="Why: kept in the audit (`frazil audit`)."),
]


def audit_trail(parts: RequestParts, reason: str | None) -> AuditTrail:
    """Return the audit as the user of this command writes it; in a home that is private."""
    from committer.service.admin.recorded_change import AuditTrail
    from committer.service.process.composition import make_home

    make_home(parts.settings)
    return AuditTrail(parts.audit, parts.world, operator_name(), reason or None)


def operator_name() -> str:
    """Return `user@machine`, with the user who logged in if that is another one (sudo)."""
    user = _user(os.geteuid())
    try:
        login = os.getlogin()
    except OSError:
        login = user  # no terminal: a job, or a container
    return f"{user}@{socket.gethostname()}" + (f", logged in as {login}" if login != user else "")


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


@asynccontextmanager
async def recorded_on_table(
    parts: Parts, action: str, table: TableIdentifier, reason: str | None, *, is_new: bool = False
) -> AsyncIterator[Change]:
    """Record the change that the block makes to a table, with the table's facts before it. Unless
    the block sets `after`, they are read once more. `is_new`: the block makes the table, and there
    is nothing to read before.
    """
    from committer.service.admin.recorded_change import Change

    before = None if is_new else await facts_now(parts, table)
    change = Change(action, table=str(table), before=before)
    if before is not None:
        change.table_uuid = str(before["table_uuid"])
    async with audit_trail(parts, reason).recorded(change):
        yield change
        if change.after is None and change.refused is None:
            change.after = await facts_now(parts, table)


async def facts_now(parts: Parts, table: TableIdentifier) -> Facts | None:
    """Return the facts of a table; None for one that is not there, or whose metadata cannot be
    read: a command may be about to repair it.
    """
    from committer.plan.commit.table_facts import table_facts

    try:
        return table_facts(await parts.catalog.load(table))
    except (NotFoundError, InvalidMetadataError):
        return None
