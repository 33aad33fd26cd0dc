"""Options that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from committer.cli.context.command_session import run_with_parts
from committer.errors import FrazilError

if TYPE_CHECKING:
    from committer.ports.catalog import Catalog
    from committer.request.table_identifier import TableIdentifier


async def list_tables(catalog: Catalog, namespace: str | None = None) -> list[TableIdentifier]:
    """List the tables of a namespace, or of all."""
    wanted = [tuple(namespace.split("."))] if namespace else await catalog.list_namespaces()
    return [table for name in wanted for table in await catalog.list_tables(name)]


def complete_table(incomplete: str) -> list[str]:
    """Complete names for the shell, of the catalog that the settings name;
    none if it cannot be read."""
    try:
        found = run_with_parts(lambda parts: list_tables(parts.catalog))
    except (FrazilError, OSError):
        return []
    return [name for name in map(str, found) if name.startswith(incomplete)]


TIMEOUT_OPTION = "--timeout"
Timeout = Annotated[
    str,
    typer.Option(
        TIMEOUT_OPTION,
        metavar="DURATION",
        help="How long to wait for a committer: 90s, 5min. 0s: leave the request to it.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object a line, for programs.")]
TableArgument = Annotated[
    str, typer.Argument(help="The table: db.flights.", autocompletion=complete_table)
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
