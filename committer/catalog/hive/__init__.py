"""A Hive metastore as catalog, in the layout of Iceberg Java's HiveCatalog."""
