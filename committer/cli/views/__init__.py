"""Views of metadata and its files: `frazil inspect`, and those that commands of tables share.

Nothing here changes a table.
"""
