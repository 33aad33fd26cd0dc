"""Scans as engines use them: splits for their tasks, and streams of appended files."""
