"""A catalog in a table bucket of S3 Tables, by its own calls and not by its REST endpoint.

`s3_tables_catalog.py` is the adapter, `s3_tables_layout.py` names and locations,
`s3_tables_namespaces.py` namespaces and lists, `s3_tables_errors.py` what the service's errors
mean, `s3_tables_probe.py` the proof of the token.
"""
