"""Scans as engines use them: splits for their tasks, and streams of appended files.

No I/O. What chooses the files is in `scan`.
"""
