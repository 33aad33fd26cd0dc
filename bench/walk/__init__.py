"""Measures the speed of checking a manifest's entries, by the layout of their maps of metrics."""
