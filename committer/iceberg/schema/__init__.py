"""Schemas, partition specs, sort orders, and how fields are named and numbered."""
