"""Filters: what they say, how they are read, and what they find of a row. No I/O.

`pruning` decides which files and manifests a filter excludes: nothing of that is here.
"""
