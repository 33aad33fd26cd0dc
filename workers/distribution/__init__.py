"""Rows brought to the tasks that write them, as a table's `write.distribution-mode` asks.

No file is written here.
"""
