"""The adapter of the ports `Queue` and `Leases`: Redis Streams.

It knows neither the content of a request nor its outcome.
"""
