"""What the files that operations add and remove make of a branch's manifests, and what the
snapshot says of it.

Whether they may land is decided in `plan/validation/`. No I/O: what must be read is asked for
(`plan/operations/head.py`).
"""
