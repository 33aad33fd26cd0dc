"""Differences between the releases of PySpark."""

from __future__ import annotations


def has_stream_writer() -> bool:
    """Return whether a data source in Python can take the batches of a stream: from 4.1 on."""
    from pyspark.sql import datasource

    return hasattr(datasource, "DataSourceStreamArrowWriter")
