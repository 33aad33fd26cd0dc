"""Manifests made of the bytes of other manifests, without decoding each entry. No I/O."""
