"""The manifests of a branch and the summary of its snapshot after operations have added and removed
files.

`plan/validation/` decides whether they may land. No I/O: a plan asks for the bytes that it lacks
(`plan/operations/head.py`).
"""
