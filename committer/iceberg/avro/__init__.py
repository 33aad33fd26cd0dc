"""Avro as Iceberg uses it: containers, codecs, schemas, and decoders for known shapes."""
