"""Azure's blobs, Data Lake Storage among them: the calls, the locations, and the keys and tokens.

The port on an object store is in `object_storage`, requests over HTTP are in `http`, not here.
"""
