"""The storage of table files with credentials that a catalog vends, which end and are renewed.

No object of the service is reached through it: those have a storage of their own.
"""
