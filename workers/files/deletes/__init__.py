"""Writes delete files: keys, and positions of rows. Nothing here decides which rows are deleted."""
