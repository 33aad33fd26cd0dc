"""Files and keys that table metadata names beside its snapshots: statistics, encryption keys.

Frazil carries them along and drops them with their snapshot; it does not interpret them.
Source: the specification, "Table Statistics", "Partition Statistics" and "Encryption Keys";
docs/reference/iceberg-notes.md 4.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from committer.iceberg.values.fragments import PrintedOnce
from committer.iceberg.values.json_reader import Reader


@dataclass(frozen=True, slots=True)
class StatisticsFile(PrintedOnce):
    """A statistics or partition statistics file of a snapshot. `details` are all further keys."""

    snapshot_id: int
    statistics_path: str
    file_size_in_bytes: int
    details: Mapping[str, object] = field(default_factory=dict)

    def _to_json(self) -> dict[str, object]:
        return print_statistics_file(self)


@dataclass(frozen=True, slots=True)
class EncryptedKey:
    """A key that the table's files are encrypted with, itself encrypted (base64)."""

    key_id: str
    encrypted_key_metadata: str
    details: Mapping[str, object] = field(default_factory=dict)


def parse_statistics_file(json_value: object, *, where: str = "statistics") -> StatisticsFile:
    """Read either kind of statistics file. Errors: `InvalidMetadataError` naming the place."""
    reader = Reader(json_value, where)
    return StatisticsFile(
        reader.integer("snapshot-id"),
        reader.text("statistics-path"),
        reader.integer("file-size-in-bytes"),
        reader.unknown(),
    )


def check_table_statistics(statistics: StatisticsFile) -> None:
    """Refuse a file of table statistics that other readers refuse, and with it the table.

    Partition statistics have no further keys. Errors: `InvalidMetadataError` naming the key.
    """
    where = f"statistics of snapshot {statistics.snapshot_id}"
    reader = Reader(dict(statistics.details), where)
    reader.integer("file-footer-size-in-bytes")
    blobs = reader.optional_list("blob-metadata")
    if blobs is None:
        raise reader.expected("blob-metadata", "a list", None)
    for position, blob in enumerate(blobs):
        found = Reader(blob, f"{where}: `blob-metadata`[{position}]")
        found.text("type")
        found.integer("snapshot-id")
        found.integer("sequence-number")
        found.integers("fields")
        found.optional_text_map("properties")


def print_statistics_file(statistics: StatisticsFile) -> dict[str, object]:
    """Print the JSON form, keys in the reference's order."""
    return {
        "snapshot-id": statistics.snapshot_id,
        "statistics-path": statistics.statistics_path,
        "file-size-in-bytes": statistics.file_size_in_bytes,
        **statistics.details,
    }


def parse_encrypted_key(json_value: object, *, where: str = "encryption key") -> EncryptedKey:
    """Read a key. Errors: `InvalidMetadataError` naming the place."""
    reader = Reader(json_value, where)
    key_id, metadata = reader.text("key-id"), reader.text("encrypted-key-metadata")
    return EncryptedKey(key_id, metadata, reader.unknown())


def check_encrypted_key(key: EncryptedKey) -> None:
    """Refuse a key that other readers refuse, and with it the table.

    Errors: `InvalidMetadataError` naming the key.
    """
    reader = Reader(dict(key.details), f"encryption key `{key.key_id}`")
    reader.optional_text("encrypted-by-id")
    reader.optional_text_map("properties")


def print_encrypted_key(key: EncryptedKey) -> dict[str, object]:
    """Print the JSON form, keys in the reference's order."""
    return {
        "key-id": key.key_id,
        "encrypted-key-metadata": key.encrypted_key_metadata,
        **key.details,
    }
