"""Background work on one table: merging manifests, expiring snapshots, collecting garbage.

Results travel with the table's next commit; nothing here delays one.
"""
