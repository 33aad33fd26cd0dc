"""The storage on a local disk, safe beside other processes and after a crash.

No object store is known here.
"""
