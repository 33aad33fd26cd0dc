"""Registers the data source: Spark imports every top-level package named `pyspark_…` and registers
its `DefaultSource`.

An error while this is imported breaks every lookup of a data source in the session. So nothing but
PySpark is imported here, and everything else when it is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from pyspark.sql.types import StructType

    from workers.sink.batch_writer import FrazilBatchWriter
    from workers.sink.stream_writer import FrazilStreamWriter


class DefaultSource(DataSource):  # type: ignore[misc]  # pyspark has no types for us
    """`df.write.format("frazil")` and `df.writeStream.format("frazil")`.

    `defaults` are options that each write of a session has (see `frazil.spark.configure`).
    """

    defaults: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def name(cls) -> str:
        return "frazil"

    def schema(self) -> StructType:
        raise NotImplementedError(
            "format `frazil` only writes: read the table with an Iceberg engine. A table of a Spark"
            " catalog cannot be `USING frazil` either: its options do not reach the writer"
        )

    def writer(self, schema: StructType, overwrite: bool) -> FrazilBatchWriter:
        with self._named_extra():
            from workers.sink.datasource import make_batch_writer

            return make_batch_writer(self._all_options(), schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> FrazilStreamWriter:  # noqa: N802
        with self._named_extra():
            from workers.sink.datasource import make_stream_writer

            return make_stream_writer(self._all_options(), schema, overwrite=overwrite)

    def _named_extra(self) -> AbstractContextManager[None]:
        """Turn a missing package into a sentence with the command that installs it."""
        from committer.extras import named_extra

        return named_extra("format `frazil`", "spark")

    def _all_options(self) -> dict[str, str]:
        return {**self.defaults, **{name.lower(): self.options[name] for name in self.options}}
