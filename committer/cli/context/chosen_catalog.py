"""The option `--catalog NAME`, of every command and of `serve`."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Annotated

import typer

CatalogName = Annotated[
    str | None,
    typer.Option(
        "--catalog", metavar="NAME", help="A catalog of Frazil's or PyIceberg's configuration."
    ),
]
# The name of `frazil --catalog NAME …`, for as long as the command runs.
chosen_catalog: ContextVar[str | None] = ContextVar("chosen_catalog", default=None)
