"""What an operation is to a branch: the files that a request adds and removes, and what they make
of the branch's manifests.

Whether it may be done at all is decided in `plan/validation/`. No I/O: what must be read is asked
for (`head.py`).
"""
