"""Benchmarks of the format alone, without a service: `make bench-format`."""
