"""Leaves out files and manifests that cannot match a filter, by their metrics and partitions.

No I/O. What a filter says is in `expressions`; what plans a scan is in `scan`.
"""
