"""Writes of Spark beside Iceberg's own runtime and Spark's Parquet writer: `make bench-spark`."""
