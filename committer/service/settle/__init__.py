"""The steps after a verdict: receipts, acknowledgments, inbox deletes, the high-water mark.

Losing any of it costs work, never truth.
"""
