"""Adapters of the port `committer.ports.Queue`: Redis Streams, and memory.

They know neither the content of a request nor its outcome.
"""
