"""Compaction by Spark: files of a table are written anew, fewer and larger, sorted or clustered.

No row of a table changes by it.
"""
