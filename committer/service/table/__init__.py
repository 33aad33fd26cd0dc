"""The rounds of one table: admission, content checks, the swap, and verdicts.

Not here: the steps after a verdict, which are in `settle`, and background work, in `upkeep`.
"""
