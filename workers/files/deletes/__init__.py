"""Writes delete files: keys, and positions of rows."""
