"""Durations as people write them: `90s`, `30min`, `12h`, `3d`."""

from __future__ import annotations

import re
from typing import Any

import typer

_UNITS_S = {"s": 1, "min": 60, "h": 3_600, "d": 86_400}
_DURATION = re.compile(r"([0-9]{1,9})(s|min|h|d)")


def parse_duration_ms(text: str, option: str | None = None) -> int:
    """Parse `3d` to milliseconds. Errors: `typer.BadParameter`."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise typer.BadParameter(
            f"expected a duration such as 90s, 30min, 12h or 3d, found `{text}`", param_hint=option
        )
    return int(found[1]) * _UNITS_S[found[2]] * 1_000


def age_option(name: str, help_text: str) -> Any:
    """Return an option whose value is an age, in milliseconds."""
    return typer.Option(name, metavar="AGE", parser=parse_duration_ms, help=help_text)
