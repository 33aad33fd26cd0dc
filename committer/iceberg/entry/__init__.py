"""One manifest entry and its data file: model, decoding, encoding, checks.

No I/O. A whole manifest is in `manifest`.
"""
