"""Chooses the adapter of a location (`storage_schemes`), and that of a catalog (`catalog_kinds`).

For the service, the command and the Spark side: properties become arguments. Libraries of an object
store or a catalog are imported once a location or a kind asks for them: one machine runs without
the extras `aws`, `gcs`, `adls`, `hive` and `rest`. No adapter lives here.
"""
