"""Transactions over several tables: their requests are gathered, and land by one swap.

Each table plans and judges its own part in its own rounds; what a table is and holds is not here.
"""
