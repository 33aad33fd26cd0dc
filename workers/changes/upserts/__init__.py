"""Upserts that look their keys up: which rows of a micro-batch count, and where old rows lie."""
