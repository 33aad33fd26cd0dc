"""`frazil table accept`: continue with a table that lacks commits that it had."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from committer.cli.context.command_session import parse_identifier, run_with_parts
from committer.cli.context.common_options import AsJson, TableArgument, Yes
from committer.cli.output.printing import confirm, print_json, say
from committer.errors import InvalidMetadataError

if TYPE_CHECKING:
    from committer.plan.ledger.state import TableState
    from committer.request.table_identifier import TableIdentifier
    from committer.service.process.composition import Parts


def accept(
    name: TableArgument,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Accept a frozen table as it is now, and forget the commits that it lacks.

    For a table that is frozen because it was restored, registered from an older metadata file, or
    lost entries of the ledger. Its missing rows do not return by themselves; epochs that its ledger
    lacks land again if their producers publish them again. Committers continue within seconds.
    """
    identifier = parse_identifier(name)
    found = run_with_parts(lambda parts: _look(parts, identifier))
    say(found.text())
    confirm("Accept?", needed=not yes)
    accepted_ms = run_with_parts(lambda parts: _accept(parts, found))
    if as_json:
        print_json({**found.describe(), "accepted_ms": accepted_ms})
    else:
        say(f"accepted {identifier}")


@dataclass(frozen=True, slots=True)
class _Found:
    """A table as it is, and what it lacks."""

    identifier: TableIdentifier
    state: TableState
    missing: Sequence[str]

    def text(self) -> str:
        metadata = self.state.metadata
        lacks = [f"  lacks: {one}" for one in self.missing] or [
            "  lacks nothing that the high-water mark knows: unless a committer has logged"
            " `table.frozen`, there is nothing to accept"
        ]
        snapshot_id = metadata.current_snapshot_id
        snapshot = "no snapshot" if snapshot_id is None else f"snapshot {snapshot_id}"
        return "\n".join(
            (
                f"{self.identifier}: {self.state.table.metadata_location}",
                f"  last sequence number {metadata.last_sequence_number}, {snapshot}",
                *lacks,
            )
        )

    def describe(self) -> dict[str, object]:
        metadata = self.state.metadata
        return {
            "table": str(self.identifier),
            "table_uuid": str(metadata.table_uuid),
            "metadata_location": self.state.table.metadata_location,
            "last_sequence_number": metadata.last_sequence_number,
            "current_snapshot_id": metadata.current_snapshot_id,
            "missing": list(self.missing),
        }


async def _look(parts: Parts, identifier: TableIdentifier) -> _Found:
    from committer.plan.ledger.high_water_mark import missing_from
    from committer.plan.ledger.state import TableState

    state = TableState.of(await parts.catalog.load(identifier))
    try:
        high_water_mark = await parts.high_water_marks.read(state.metadata.require_uuid())
    except InvalidMetadataError as error:
        return _Found(identifier, state, [str(error)])
    return _Found(identifier, state, list(missing_from(state, high_water_mark)))


async def _accept(parts: Parts, found: _Found) -> int:
    shown = found.state.table.metadata_location
    if await parts.catalog.current_location(found.identifier) != shown:
        say(f"frazil: {found.identifier} has changed meanwhile; nothing was accepted: look again")
        raise typer.Exit(1)
    accepted = await parts.high_water_marks.accept(found.state, now_ms=parts.world.now_ms())
    return accepted.accepted_ms
