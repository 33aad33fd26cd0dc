"""Transactions over several tables: they wait in a room of their own until a request of each table
is durable and checked, and then take the commit turns of their tables.

How a table plans and judges its part is not here.
"""
