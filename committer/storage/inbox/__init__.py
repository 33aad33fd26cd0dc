"""The service's own objects, on any `Storage`: inbox and quarantine, and what lies beside them.

No object of a table is written here.
"""
