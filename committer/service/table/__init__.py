"""The rounds of one table: admission, content checks, the swap, and verdicts.

The steps after a verdict live in `settle`; background work lives in `upkeep`.
"""
