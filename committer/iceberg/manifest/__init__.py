"""Manifests and manifest lists as files: reading and writing them whole.

No I/O: bytes come in and go out. Manifests made of the bytes of others are in `splice`.
"""
