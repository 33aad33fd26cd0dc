"""Reads tables for Spark: the readers of the data source `frazil`, planned on the driver."""
