"""Metadata tables: what a table's metadata and manifests say, row by row. Pure: bytes come in.

Nothing here opens a file.
"""
