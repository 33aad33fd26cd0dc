"""Reads table properties, which are text, as values."""

from __future__ import annotations

from collections.abc import Mapping


def is_true(properties: Mapping[str, str], key: str, *, default: bool) -> bool:
    """Read a property as true or not, as Iceberg Java reads them; the default where it is unset."""
    return properties[key].strip().lower() == "true" if key in properties else default


def positive(properties: Mapping[str, str], key: str, default: int) -> int:
    """Read a property as a number above 0; the default if it holds none."""
    text = properties.get(key, "").strip()
    is_number = text.isascii() and text.isdigit() and len(text) < 16
    return int(text) if is_number and int(text) > 0 else default
