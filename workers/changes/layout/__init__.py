"""Which task writes which row: as few files as the rows need, in whatever partitions they are.

Nothing is written here.
"""
