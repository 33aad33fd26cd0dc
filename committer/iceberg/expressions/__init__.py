"""Filters: what they say, how they are read, and what they find of a row. No I/O.

What they prove of files and manifests is in `pruning`.
"""
