"""Backoff, fair turns among producers, and the share of each replica. No I/O."""
