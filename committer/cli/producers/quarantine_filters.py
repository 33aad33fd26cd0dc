"""The options that choose requests in quarantine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from committer.cli.output.durations import age_option

_CODE = "--code"


def _reason_code(text: str) -> str:
    from committer.iceberg.values.near_names import did_you_mean

    codes = _codes()
    if text not in codes:
        hint = did_you_mean(text, codes) or f"there are {', '.join(codes)}"
        raise typer.BadParameter(f"`{text}` is no reason code; {hint}", param_hint=_CODE)
    return text


def _codes() -> list[str]:
    from committer.reason import Reason

    return [code.value for code in Reason]


def _audit_reason(text: str | None) -> str | None:
    """Refuse a reason code: `--reason` was the filter once, and nothing would be filtered now."""
    if text in _codes():
        raise typer.BadParameter(
            f"it says why, for the audit; to choose requests by their reason code, give"
            f" {_CODE} {text}",
            param_hint="--reason",
        )
    return text


AuditReason = Annotated[
    str | None,
    typer.Option(
        "--reason",
        metavar="TEXT",
        callback=_audit_reason,
        help="Why: kept in the audit (`frazil audit`).",
    ),
]


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters that select requests of the quarantine; None: all."""

    table: Annotated[
        str | None,
        typer.Option("--table", help="Of this table: name or uuid."),
    ] = None
    producer: Annotated[str | None, typer.Option("--producer", help="Of this producer.")] = None
    code: Annotated[
        str | None,
        typer.Option(_CODE, metavar="CODE", parser=_reason_code, help="With this reason code."),
    ] = None
    older_than_ms: Annotated[
        int | None,
        age_option("--older-than", "In quarantine for longer: 30min, 12h, 3d."),
    ] = None
    younger_than_ms: Annotated[
        int | None,
        age_option("--younger-than", "In quarantine for less."),
    ] = None


@dataclass(frozen=True, slots=True)
class ListFilters(Filters):
    """The same of a command that changes nothing, and therefore needs no `--reason` of its own."""

    code: Annotated[
        str | None,
        typer.Option(
            _CODE, "--reason", metavar="CODE", parser=_reason_code, help="With this reason code."
        ),
    ] = None
