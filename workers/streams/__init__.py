"""Streaming queries as users start them: a sink for `foreachBatch`, and upserts."""
