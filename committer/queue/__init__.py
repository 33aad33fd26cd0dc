"""Adapters of the port `committer.ports.queue.Queue`: Redis Streams, and memory.

They know neither the content of a request nor its outcome.
"""
