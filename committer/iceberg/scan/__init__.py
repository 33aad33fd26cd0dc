"""Scan planning: which files of a snapshot, or of a range of snapshots, a reader has to read.

No I/O: nothing here opens a data file or a delete file.
"""
