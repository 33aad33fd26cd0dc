"""Files of each format, opened: their columns in Iceberg's types, and batches of their rows.

No delete is applied here.
"""
