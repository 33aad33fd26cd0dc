"""The steps after a verdict: receipts, acknowledgements, inbox deletes, the high-water mark.

Losing any of it costs work, never truth.
"""
