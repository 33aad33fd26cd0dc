"""Rows that delete files delete of a data file: loaded, kept for other tasks, found in batches."""
