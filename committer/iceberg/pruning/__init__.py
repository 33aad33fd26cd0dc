"""Leaves out files and manifests that cannot match a filter, by their metrics and partitions."""
