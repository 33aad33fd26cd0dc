"""Scan planning: which files of a snapshot, or of a range of snapshots, a reader has to read."""
