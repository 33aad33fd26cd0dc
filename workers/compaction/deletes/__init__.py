"""Delete files written anew by Spark: small ones joined, equality deletes turned into positions."""
