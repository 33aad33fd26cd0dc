"""Delete files written anew by Spark: small ones joined, equality deletes turned into positions.

No data file is written anew here.
"""
