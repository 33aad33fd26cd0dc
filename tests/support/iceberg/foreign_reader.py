"""PyIceberg as a second reader of what we write. Imported by the tests that need it: it is slow."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def pyiceberg_entries(path: Path, *, snapshot_id: int, sequence_number: int) -> list[Any]:
    """Return the entries of a manifest with the values they inherit from a row with these ids."""
    from pyiceberg.io.pyarrow import PyArrowFileIO
    from pyiceberg.manifest import ManifestContent, ManifestFile

    row = ManifestFile.from_args(
        manifest_path=str(path),
        manifest_length=path.stat().st_size,
        partition_spec_id=0,
        content=ManifestContent.DATA,
        sequence_number=sequence_number,
        min_sequence_number=sequence_number,
        added_snapshot_id=snapshot_id,
        added_files_count=1,
        existing_files_count=0,
        deleted_files_count=0,
        added_rows_count=1,
        existing_rows_count=0,
        deleted_rows_count=0,
        partitions=None,
        key_metadata=None,
    )
    return list(row.fetch_manifest_entry(PyArrowFileIO(), discard_deleted=False))
