"""Data files: Parquet written to a disk or an object store, and taken back if nothing names it."""
