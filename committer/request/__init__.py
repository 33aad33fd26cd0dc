"""The commit request: its model, its bytes, its key and attempt, its signature, and its receipt.

A durable format and the contract with every client. Pure: no I/O, no clock. What a request may do
to a table is decided in `committer.plan`.
"""
