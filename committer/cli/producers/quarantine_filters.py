"""The options that choose requests in quarantine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from committer.cli.output.durations import parse_duration_ms


def _reason_code(text: str) -> str:
    from committer.iceberg.values.near_names import did_you_mean
    from committer.reason import Reason

    codes = [code.value for code in Reason]
    if text not in codes:
        hint = did_you_mean(text, codes) or f"there are {', '.join(codes)}"
        raise typer.BadParameter(f"`{text}` is no reason code; {hint}", param_hint="--reason")
    return text


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters that select requests of the quarantine; None: all."""

    table: Annotated[
        str | None,
        typer.Option("--table", help="Of this table: name or uuid."),
    ] = None
    producer: Annotated[str | None, typer.Option("--producer", help="Of this producer.")] = None
    reason: Annotated[
        str | None,
        typer.Option(
            "--reason", metavar="CODE", parser=_reason_code, help="With this reason code."
        ),
    ] = None
    older_than_ms: Annotated[
        int | None,
        typer.Option(
            "--older-than",
            metavar="AGE",
            parser=parse_duration_ms,
            help="In quarantine for longer: 30min, 12h, 3d.",
        ),
    ] = None
    younger_than_ms: Annotated[
        int | None,
        typer.Option(
            "--younger-than",
            metavar="AGE",
            parser=parse_duration_ms,
            help="In quarantine for less.",
        ),
    ] = None
