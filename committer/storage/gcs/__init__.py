"""Google Cloud Storage: the calls, the locations, and the tokens.

The port on an object store is in `object_storage`, requests over HTTP are in `http`, not here.
"""
