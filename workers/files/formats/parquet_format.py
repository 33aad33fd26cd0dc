"""Parquet: each write makes one row group."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from workers.arrow.column_metrics import MetricsCollector
from workers.arrow.footer_metrics import FileMetrics, Leaf
from workers.files.formats.dictionary_choice import DictionaryChoice
from workers.files.formats.parquet_options import ParquetOptions
from workers.files.write_properties import FormatName


class ParquetFormat:
    """`FileFormat`. The first rows of the first file choose the columns with dictionaries, and the
    first rows of each file the sizes of its bloom filters."""

    name: FormatName = "parquet"

    def __init__(self, schema: pa.Schema, leaves: Sequence[Leaf], options: ParquetOptions) -> None:
        self._schema, self._leaves, self._options = schema, leaves, options
        self._dictionaries = DictionaryChoice(options.dictionary_bytes)
        self.target_file_bytes = options.target_file_bytes
        self.row_group_bytes = options.row_group_bytes

    def open(self, sink: pa.NativeFile, first_rows: pa.Table) -> _ParquetFile:
        dictionaries = self._dictionaries.columns(first_rows)
        footers: list[pq.FileMetaData] = []
        writer = pq.ParquetWriter(
            sink,
            self._schema,
            metadata_collector=footers,
            use_dictionary=list(dictionaries) or False,
            **self._options.writer_arguments(),
            **self._options.bloom_filters.writer_arguments(first_rows.num_rows),
        )
        return _ParquetFile(writer, footers, self._leaves)


class _ParquetFile:
    """`OpenFile`."""

    def __init__(
        self, writer: pq.ParquetWriter, footers: list[pq.FileMetaData], leaves: Sequence[Leaf]
    ) -> None:
        self._writer, self._footers = writer, footers
        self._metrics = MetricsCollector(leaves)

    def write(self, rows: pa.Table) -> None:
        self._metrics.add(rows)
        self._writer.write_table(rows, row_group_size=rows.num_rows)

    def close(self) -> FileMetrics:
        self._writer.close()
        return self._metrics.finish(self._footers[0])

    def abandon(self) -> None:
        self._writer.close()
