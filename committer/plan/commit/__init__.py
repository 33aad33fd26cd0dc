"""One attempt to commit: its files, its requirements, and its fate after it was sent.

It decides nothing about producers: that is `ledger`. No I/O.
"""
