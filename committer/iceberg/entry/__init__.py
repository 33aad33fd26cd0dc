"""One manifest entry and its data file: model, decoding, encoding, checks."""
