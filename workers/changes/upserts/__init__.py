"""Upserts that look their keys up: which rows of a micro-batch count, and where old rows lie.

The rules of an upsert that need no Spark are in `workers.upserts`, not here.
"""
