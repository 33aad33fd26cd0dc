"""The commit loop of one table: admission, content checks, the swap, and verdicts.

What happens after a verdict lives in `settle`; background work lives in `upkeep`.
"""
