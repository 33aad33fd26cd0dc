"""Proofs that an epoch of a producer has landed: the ledger, its history, the high-water mark.

Nothing here plans a commit. No I/O.
"""
