"""Warnings to the user of a write that runs all the same. None of them fails a write."""
