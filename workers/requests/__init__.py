"""Commit requests of a writer: built, signed, published, and followed until they are answered.

Nothing here knows Spark.
"""
