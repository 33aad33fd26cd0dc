"""`frazil audit`: who changed what, why, and the state before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from committer.cli.context.command_session import run_with_requests
from committer.cli.context.common_options import AsJson
from committer.cli.context.option_groups import grouped
from committer.cli.output.durations import age_option
from committer.cli.output.printing import print_json_lines, print_table, say, time_text

if TYPE_CHECKING:
    from committer.service.process.composition import RequestParts
    from committer.storage.inbox.audit_log import AuditEntry, AuditPage

_FACT_CHARACTERS_MAX = 60
_OUTCOMES = {"begun": "unknown"}


@dataclass(frozen=True, slots=True)
class AuditFilters:
    """The filters that choose entries; None: all."""

    table: Annotated[str | None, typer.Option("--table", help="Of this table: name or uuid.")] = (
        None
    )
    producer: Annotated[str | None, typer.Option("--producer", help="Of this producer.")] = None
    who: Annotated[
        str | None, typer.Option("--who", metavar="TEXT", help="By an operator or a key like this.")
    ] = None

    def accepts(self, entry: AuditEntry) -> bool:
        names = f"{entry.who} {entry.key_id or ''}"
        return (
            self.table in (None, entry.table, entry.table_uuid)
            and self.producer in (None, entry.producer)
            and (self.who is None or self.who in names)
        )


@grouped
def audit(
    filters: AuditFilters,
    younger_than_ms: Annotated[
        int | None,
        age_option("--younger-than", "Of the last 30min, 12h, 3d: lists these days only."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show who changed what: operators' commands, and requests that alter or delete.

    Oldest first. A command has the user and the machine that ran it, its --reason, and an outcome:
    done, failed, or unknown if it was interrupted. A request that has landed has its producer and
    the key that signed it. --json has the state before and after, and the error.
    """
    from committer.storage.inbox.audit_log import merged

    async def work(parts: RequestParts) -> AuditPage:
        now_ms = parts.world.now_ms()
        since_ms = 0 if younger_than_ms is None else now_ms - younger_than_ms
        return await parts.audit.read(since_ms=since_ms, now_ms=now_ms)

    page = run_with_requests(work)
    chosen = [entry for entry in merged(page.entries) if filters.accepts(entry)]
    if as_json:
        print_json_lines(entry.model_dump() | {"outcome": _outcome(entry)} for entry in chosen)
    elif chosen:
        print_table(
            ("time", "who", "action", "table", "about", "outcome", "reason", "before", "after"),
            [_row(entry) for entry in chosen],
        )
    else:
        say("frazil: the audit has no such entry")
    for location, why in page.unreadable.items():
        say(f"frazil: `{location}`: {why}")
    if page.unreadable:
        raise typer.Exit(1)


def _outcome(entry: AuditEntry) -> str:
    return _OUTCOMES.get(entry.phase, entry.phase)


def _row(entry: AuditEntry) -> Sequence[object]:
    who = entry.who if entry.key_id is None else f"{entry.who}, key {entry.key_id}"
    about = [] if entry.producer is None or entry.phase == "landed" else [entry.producer]
    if entry.epoch is not None:
        about.append(f"epoch {entry.epoch}")
    if entry.branch not in (None, "main"):
        about.append(f"branch {entry.branch}")
    return (
        time_text(entry.at_ms),
        who,
        entry.action,
        entry.table,
        " ".join(about),
        _outcome(entry),
        entry.reason if entry.error is None else f"{entry.reason or ''} ({entry.error})".strip(),
        _facts_text(entry.before),
        _facts_text(entry.after),
    )


def _facts_text(facts: Mapping[str, object] | None) -> str:
    """Print facts on one line, without the long ones: --json has all of them."""
    texts = (f"{name}={value}" for name, value in (facts or {}).items())
    return ", ".join(
        text if len(text) <= _FACT_CHARACTERS_MAX else f"{text[: _FACT_CHARACTERS_MAX - 1]}…"
        for text in texts
    )
