"""The names of producers: what the user calls a query or an application."""

from __future__ import annotations

from typing import Any

_CHARACTERS_MAX = 100


def application_name(spark: Any) -> str | None:
    """Return the name of the Spark application, as far as it can be shown."""
    return printable_name(spark.conf.get("spark.app.name", None))


def printable_name(name: str | None) -> str | None:
    """Return a name as far as it can be shown; None where nothing is left of it."""
    text = "".join(filter(str.isprintable, name or ""))
    return text[:_CHARACTERS_MAX] or None
