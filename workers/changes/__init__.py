"""DELETE, UPDATE and MERGE by Spark: planned on the driver, read and written by tasks.

Nothing here decides whether a change may commit: `committer.plan.validation` does.
"""
