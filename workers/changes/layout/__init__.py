"""Assigns rows to tasks: as few files as the rows need, in whatever partitions they are.

Nothing is written here.
"""
