"""Evolution: how schemas, partition specs and sort orders become other ones.

No I/O. The updates that bring them into a table's metadata are in `updates`.
"""
