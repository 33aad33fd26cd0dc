"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="One JSON object a line, for programs.")]
TableArgument = Annotated[str, typer.Argument(help="The table: db.flights.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
