"""Adapters of the port `committer.ports.Queue`: Redis Streams, and memory.

What a request says, and what becomes of it, is none of their business.
"""
