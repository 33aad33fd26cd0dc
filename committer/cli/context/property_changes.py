"""Properties on a command line: `KEY=VALUE` to set and `--unset KEY` to remove.

Of tables and namespaces alike; what a key and a value may be is for the command to check.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

# The end of `… set`.
PAIRS = "KEY=VALUE"
PairsArgument = Annotated[
    list[str] | None, typer.Argument(metavar=PAIRS, help="Properties to set.")
]
UnsetOption = Annotated[
    list[str] | None,
    typer.Option("--unset", metavar="KEY", help="Remove a property. May be repeated."),
]


@dataclass(frozen=True, slots=True)
class PropertyChange:
    """The properties that one command sets and removes."""

    wanted: Mapping[str, str]
    removed: Sequence[str]

    def __str__(self) -> str:
        return ", ".join(
            (
                *(f"{key}={text}" for key, text in self.wanted.items()),
                *(f"{key} removed" for key in self.removed),
            )
        )


def parse_change(pairs: Iterable[str] | None, unset: Iterable[str] | None) -> PropertyChange:
    """Parse what `… set` was given. Errors: `typer.BadParameter` for nothing to change, and for a
    key that is to be set and to be removed.
    """
    wanted, removed = parse_pairs(pairs or (), hint=PAIRS), tuple(unset or ())
    if not wanted and not removed:
        raise typer.BadParameter(f"expected {PAIRS}, or --unset KEY")
    if both := sorted(wanted.keys() & set(removed)):
        raise typer.BadParameter(f"`{both[0]}` is to be set and to be removed")
    return PropertyChange(wanted, removed)


def parse_pairs(pairs: Iterable[str], *, hint: str) -> dict[str, str]:
    """Parse `KEY=VALUE` pairs. Errors: `typer.BadParameter`."""
    properties: dict[str, str] = {}
    for pair in pairs:
        key, separator, text = pair.partition("=")
        key = key.strip()
        if not separator or not key:
            raise typer.BadParameter(f"{hint}: expected {PAIRS}, found `{pair}`")
        if key in properties:
            raise typer.BadParameter(f"{hint}: `{key}` is there twice")
        properties[key] = text
    return properties
