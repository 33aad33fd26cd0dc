"""Schemas, partition specs, sort orders, and how fields are named and numbered.

No I/O. How they become other ones is in `evolution`.
"""
