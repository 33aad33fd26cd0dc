"""Benchmarks of Frazil beside Iceberg Java and PyIceberg: same catalog, same machine, in turns.

`python -m bench` runs them (`make bench`). Everything that is measured runs in processes of its
own; this one waits. Nothing here is imported by the product.
"""
