"""Filters: what they say, how they are read, and what they prove of files and manifests."""
