"""Arrow columns as Iceberg sees them: types, values, metrics, partitions. No I/O."""
