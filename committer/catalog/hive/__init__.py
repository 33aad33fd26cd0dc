"""A Hive metastore as catalog, in the layout of Iceberg Java's HiveCatalog.

No other package imports `thrift`. Names of types that Glue shows too are in `hive_type_names`.
"""
