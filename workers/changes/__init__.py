"""DELETE, UPDATE and MERGE by Spark: planned on the driver, read and written by tasks."""
