"""Options that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from committer.cli.context.command_session import run_with_parts
from committer.errors import FrazilError

if TYPE_CHECKING:
    from committer.service.process.composition import Parts


def complete_table(incomplete: str) -> list[str]:
    """Complete names for the shell, of the catalog that the settings name;
    none if it cannot be read."""

    async def names(parts: Parts) -> list[str]:
        namespaces = await parts.catalog.list_namespaces()
        listed = [await parts.catalog.list_tables(namespace) for namespace in namespaces]
        return [str(table) for tables in listed for table in tables]

    try:
        found = run_with_parts(names)
    except (FrazilError, OSError):
        return []
    return [name for name in found if name.startswith(incomplete)]


AsJson = Annotated[bool, typer.Option("--json", help="One JSON object a line, for programs.")]
TableArgument = Annotated[
    str, typer.Argument(help="The table: db.flights.", autocompletion=complete_table)
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
