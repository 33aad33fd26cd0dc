"""The formats of data files: how rows of each become the bytes of a file, and their metrics.

Nothing here publishes a file.
"""
