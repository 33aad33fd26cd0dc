"""Registers the data source: Spark imports every top-level package named `pyspark_…` and registers
its `DefaultSource`.

An error while this is imported breaks every lookup of a data source in the session. So nothing but
PySpark is imported here, and everything else when it is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, SupportsIndex

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader
    from pyspark.sql.types import StructType

    from workers.sink.batch_writer import FrazilBatchWriter
    from workers.sink.stream_writer import FrazilStreamWriter
    from workers.source.batch_reader import PinnedState


@contextmanager
def _spark_call() -> Iterator[None]:
    """Turn a missing package into a sentence with the command that installs it, and put the
    sentence of any error of ours above its traceback."""
    from committer.extras import named_extra
    from workers.spark.message_first import message_first
    from workers.spark.worker_process import begin_call

    begin_call()
    with message_first(), named_extra("format `frazil`", "spark"):
        yield


class DefaultSource(DataSource):  # type: ignore[misc]  # pyspark has no types for us
    """`format("frazil")` of `df.write`, `df.writeStream`, `spark.read` and `spark.readStream`.

    `defaults` are options that each read and write of a session has (see `frazil.spark.configure`).
    """

    defaults: ClassVar[Mapping[str, str]] = {}
    # Found by `schema` for the reader: the state of the table as the DataFrame was made.
    _pinned: PinnedState | None = None
    _has_reader: bool = False

    @classmethod
    def name(cls) -> str:
        return "frazil"

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        """Pickle without settings once a reader is made: Spark sends the source to the tasks then,
        which need its name only."""
        if self._has_reader:
            return DefaultSource, ({},)
        return super().__reduce_ex__(protocol)  # type: ignore[no-any-return]

    def schema(self) -> StructType:
        with _spark_call():
            from workers.source.batch_reader import describe_read

            schema, self._pinned = describe_read(self._all_options())
            return schema

    def reader(self, schema: StructType) -> DataSourceReader:
        with _spark_call():
            from workers.source.batch_reader import make_batch_reader

            reader = make_batch_reader(self._all_options(), schema, self._pinned)
            self._has_reader = True
            return reader

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        with _spark_call():
            from workers.source.stream_reader import make_stream_reader

            reader = make_stream_reader(self._all_options(), schema)
            self._has_reader = True
            return reader

    def writer(self, schema: StructType, overwrite: bool) -> FrazilBatchWriter:
        with _spark_call():
            from workers.sink.datasource import make_batch_writer

            return make_batch_writer(self._all_options(), schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> FrazilStreamWriter:  # noqa: N802
        with _spark_call():
            from workers.sink.datasource import make_stream_writer

            return make_stream_writer(self._all_options(), schema, overwrite=overwrite)

    def _all_options(self) -> dict[str, str]:
        return {**self.defaults, **{name.lower(): self.options[name] for name in self.options}}
