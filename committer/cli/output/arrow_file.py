"""Metadata tables as Arrow IPC files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from committer.arrow_rows import arrow_batches, arrow_columns
from committer.iceberg.inspection.values import Row


def write_arrow(file: str, kind: str, rows: Iterable[Row]) -> None:
    """Write the rows of a metadata table as they come, one batch in memory.

    The file is there when it is whole: rows that cannot be read leave what was there before.
    Errors: `OSError`, and those of the rows.
    """
    beside = Path(f"{file}.partial")
    try:
        with (
            pa.OSFile(str(beside), "wb") as sink,
            pa.ipc.new_file(sink, arrow_columns(kind)) as writer,
        ):
            for batch in arrow_batches(kind, rows):
                writer.write_batch(batch)
        beside.replace(file)
    finally:
        beside.unlink(missing_ok=True)
