"""The keys of a source as a filter of the table: which rows of it they may match.

No row is read or written here.
"""
