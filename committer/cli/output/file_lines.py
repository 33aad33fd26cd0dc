"""Rows of files as JSON lines in order of their paths, of tables that do not fit into memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from tempfile import SpooledTemporaryFile

from committer.cli.output.printing import json_line
from committer.iceberg.inspection.file_rows import file_order
from committer.iceberg.inspection.values import Row

_MEMORY_BYTES_MAX = 64 << 20


def file_lines(rows: Iterable[Row]) -> Iterator[bytes]:
    """Yield one line of JSON a file, data files first.
    Memory holds their paths; the lines wait on disk where they are more than 64 MiB."""
    places: list[tuple[tuple[bool, str], int, int]] = []
    end = 0
    with SpooledTemporaryFile(max_size=_MEMORY_BYTES_MAX) as spool:
        for row in rows:
            line = json_line(row)
            spool.write(line)
            places.append((file_order(row), end, len(line)))
            end += len(line)
        for _, start, size in sorted(places):
            spool.seek(start)
            yield spool.read(size)
