"""Parquet files that others wrote, as data files of a table: by their footers, never by their rows.

No publishing and no catalog here: the command publishes them.
"""
