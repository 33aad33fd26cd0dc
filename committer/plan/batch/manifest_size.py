"""A table's target size of manifests. Source: docs/reference/iceberg-notes.md 7."""

from __future__ import annotations

from collections.abc import Mapping

from committer.iceberg.metadata.property_values import positive

TARGET_PROPERTY = "commit.manifest.target-size-bytes"
# A manifest is held in memory until it is written.
TARGET_BYTES_MAX = 64 * 1024 * 1024
_DEFAULT_BYTES = 8 * 1024 * 1024


def target_bytes(properties: Mapping[str, str]) -> int:
    """Return the table's target size; Iceberg Java's default if no property is readable."""
    return min(positive(properties, TARGET_PROPERTY, _DEFAULT_BYTES), TARGET_BYTES_MAX)
