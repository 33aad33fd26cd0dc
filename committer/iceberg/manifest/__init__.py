"""Manifests and manifest lists as files: reading and writing them whole."""
