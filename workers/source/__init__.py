"""Reads tables for Spark: the readers of the data source `frazil`, planned on the driver.

No row of a data file is decoded here: `read` does.
"""
