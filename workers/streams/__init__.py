"""Streaming queries as users start them: a sink for `foreachBatch`, and upserts.

How a batch is written is in `sink`, not here.
"""
