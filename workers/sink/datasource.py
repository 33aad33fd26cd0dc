"""Makes the writers of the data source `frazil`. Runs on the driver only.

The class that Spark looks up is `pyspark_frazil.DefaultSource`; it imports this when it is used.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import StructType

from committer.errors import SettingsError
from workers.settings.options import parse_options
from workers.sink.batch_writer import FrazilBatchWriter
from workers.sink.publication import load_target
from workers.sink.stream_writer import FrazilStreamWriter


def make_batch_writer(
    options: Mapping[str, str], schema: StructType, *, overwrite: bool
) -> FrazilBatchWriter:
    """Make a batch writer.
    Errors: `SettingsError` for options, `PublishError` for a table or rows that do not fit."""
    if overwrite:
        raise SettingsError(
            'format `frazil` only appends: use mode("append"). To replace rows, delete the old ones'
            " with an Iceberg engine (DELETE FROM …) and append the new ones"
        )
    parsed = parse_options(options, streaming=False)
    return FrazilBatchWriter(parsed, load_target(parsed, schema))


def make_stream_writer(
    options: Mapping[str, str], schema: StructType, *, overwrite: bool
) -> FrazilStreamWriter:
    """Make a stream writer. Errors: as `make_batch_writer`."""
    if overwrite:
        raise SettingsError(
            'format `frazil` only appends: use outputMode("append"), not "complete". An aggregate'
            " can be appended once a watermark has closed its window"
        )
    parsed = parse_options(options, streaming=True)
    return FrazilStreamWriter(parsed, load_target(parsed, schema))
