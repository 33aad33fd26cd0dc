"""The choice of snapshots to expire, of manifests to merge, and of files that nothing names.

Nothing is deleted here. No I/O.
"""
