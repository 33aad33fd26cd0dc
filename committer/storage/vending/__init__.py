"""The storage of table files with credentials that a catalog vends, which end and are renewed."""
