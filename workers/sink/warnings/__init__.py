"""Warnings to the user of a write that runs all the same."""
