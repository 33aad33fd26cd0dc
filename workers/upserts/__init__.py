"""Upserts as Arrow sees them: which rows of a task win, and which old rows their keys delete.

Nothing here needs Spark.
"""
