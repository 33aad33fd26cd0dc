"""Decisions, pure: what a batch is, what the ledger answers, what a commit writes.

Values in, values out. No I/O, no clock, no chance: ids and time are arguments, and what must be
read is asked for as a value.
"""
