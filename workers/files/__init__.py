"""Data files: written to a disk or an object store, and taken back if nothing names them.

Nothing here publishes a file: `requests` does.
"""
