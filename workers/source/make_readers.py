"""Makes the readers of the data source `frazil`. Runs on the driver only.

The class that Spark looks up is `pyspark_frazil.DefaultSource`; it imports this when it is used.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from workers.source.batch_reader import PinnedState, describe_read, make_reader
from workers.source.read_options import parse_read_options
from workers.source.stream_reader import open_stream_reader


def describe(options: Mapping[str, str]) -> tuple[StructType, PinnedState]:
    """Return the schema of a read, and the state of the table that a batch reads.

    Errors: `SettingsError` for options, `NoSuchTableError`, `NotFoundError` for a state that is not
    there, `UnsupportedError` for columns that Spark has no type for.
    """
    return describe_read(parse_read_options(options, streaming=None))


def make_batch_reader(
    options: Mapping[str, str], schema: StructType, pinned: PinnedState | None
) -> DataSourceReader:
    """Make a batch reader. Errors: as `describe`, and those of planning."""
    return make_reader(parse_read_options(options, streaming=False), schema, pinned)


def make_stream_reader(options: Mapping[str, str], schema: StructType) -> DataSourceStreamReader:
    """Make a stream reader. Errors: as `describe`."""
    return open_stream_reader(parse_read_options(options, streaming=True), schema)
