"""Makes the writers of the data source `frazil`. Runs on the driver only.

The class that Spark looks up is `pyspark_frazil.DefaultSource`; it imports this when it is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyspark
from pyspark.sql.types import StructType

from committer.errors import SettingsError, UnsupportedError
from workers.settings.options import WriteOptions, parse_options
from workers.settings.upsert_options import DELETES
from workers.sink.batch_writer import FrazilBatchWriter
from workers.sink.wanted_table import load_target
from workers.spark.releases import has_stream_writer

if TYPE_CHECKING:
    from workers.sink.stream_writer import FrazilStreamWriter


def make_batch_writer(
    options: Mapping[str, str], schema: StructType, *, overwrite: bool
) -> FrazilBatchWriter:
    """Make a batch writer. `overwrite`: as the mode of the write says.
    Errors: `SettingsError` for options, `PublishError` for a table or rows that do not fit."""
    parsed = parse_options(options, streaming=False, overwrite=overwrite)
    _require_no_look_up(parsed)
    return FrazilBatchWriter(parsed, load_target(parsed, schema, looks_up=False))


def make_stream_writer(
    options: Mapping[str, str], schema: StructType, *, overwrite: bool
) -> FrazilStreamWriter:
    """Make a stream writer. `overwrite`: each micro-batch has all rows of the result.
    Errors: as `make_batch_writer`; `UnsupportedError` where PySpark has none."""
    if not has_stream_writer():
        raise UnsupportedError(
            f"streaming writes with format `frazil` need PySpark 4.1, found {pyspark.__version__}:"
            " here use rows.writeStream.foreachBatch(frazil.spark.sink(table))"
        )
    from workers.sink.stream_writer import FrazilStreamWriter  # its base is new in PySpark 4.1

    parsed = parse_options(options, streaming=True, overwrite=overwrite)
    _require_no_look_up(parsed)
    return FrazilStreamWriter(parsed, load_target(parsed, schema, looks_up=False))


def _require_no_look_up(options: WriteOptions) -> None:
    """Refuse what takes jobs of Spark before the write: a data source in Python runs none."""
    if options.upsert is not None and options.upsert.deletes == "positions":
        raise SettingsError(
            f"option `{DELETES}`: `positions` looks keys up by jobs of their own: start the query"
            ' with frazil.spark.upsert_stream(rows, keys, deletes="positions"), or use'
            " frazil.spark.sink(table, ...) in foreachBatch. For batches there is"
            " frazil.spark.merge_into"
        )
