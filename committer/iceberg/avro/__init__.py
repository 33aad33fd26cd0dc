"""Avro as Iceberg uses it: containers, codecs, schemas, and decoders for known shapes.

No I/O. What the rows of a manifest mean is in `entry` and `manifest`.
"""
