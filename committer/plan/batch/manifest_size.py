"""A table's target size of manifests. Source: docs/reference/iceberg-notes.md 7."""

from __future__ import annotations

from collections.abc import Mapping

TARGET_PROPERTY = "commit.manifest.target-size-bytes"
# A manifest is held in memory until it is written.
TARGET_BYTES_MAX = 64 * 1024 * 1024
_DEFAULT_BYTES = 8 * 1024 * 1024


def target_bytes(properties: Mapping[str, str]) -> int:
    """Return the table's target size; Iceberg Java's default if no property is readable."""
    return min(positive(properties, TARGET_PROPERTY, _DEFAULT_BYTES), TARGET_BYTES_MAX)


def is_true(properties: Mapping[str, str], key: str, *, default: bool) -> bool:
    """Read a property as true or not, as Iceberg Java reads them; the default where it is unset."""
    return properties[key].strip().lower() == "true" if key in properties else default


def positive(properties: Mapping[str, str], key: str, default: int) -> int:
    """Read a property as a number above 0; the default if it holds none."""
    text = properties.get(key, "").strip()
    is_number = text.isascii() and text.isdigit() and len(text) < 16
    return int(text) if is_number and int(text) > 0 else default
