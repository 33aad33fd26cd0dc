"""`frazil demo`: the whole flow on one machine, and its proof by independent readers.

A user of everything else: nothing imports this but its command. PySpark is imported by
`application.py` alone, which runs in processes of its own; PyIceberg and DuckDB by
`demo_readers.py`.
"""
