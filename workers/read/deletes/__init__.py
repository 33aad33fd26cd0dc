"""Rows that delete files delete of a data file: loaded, kept for other tasks, found in batches.

Which delete files a data file has is planned in `committer.iceberg.scan`, not here.
"""
