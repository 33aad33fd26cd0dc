"""One hint for a streaming query whose micro-batches make small data files.

Runs on the driver. Each Python worker that commits micro-batches gives the hint once a query.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from committer.iceberg.entry.data_file import DataFile

_log = logging.getLogger("frazil.workers")

SMALL_FILE_BYTES = 1024 * 1024
# A driver may run any number of queries, one after another.
_QUERIES_MAX = 1_000
_hinted: set[tuple[str, str]] = set()


def hint_at_small_files(table: str, query_id: str, files: Sequence[DataFile]) -> None:
    """Warn if the data files of a micro-batch have less than `SMALL_FILE_BYTES` on average."""
    size_bytes = sum(file.file_size_in_bytes for file in files)
    query = (table, query_id)
    if size_bytes >= len(files) * SMALL_FILE_BYTES or query in _hinted:
        return
    if len(_hinted) >= _QUERIES_MAX:
        _hinted.clear()
    _hinted.add(query)
    _log.warning(
        "table `%s`: a micro-batch of query %s wrote %d data files of %d bytes on average. Readers"
        " are slow with files below 1 MB: give the query a longer trigger"
        ' (`.trigger(processingTime="1 minute")`), fewer partitions, or compact the table'
        " (`frazil.spark.rewrite_data_files`).",
        table,
        query_id,
        len(files),
        size_bytes // len(files),
    )
