"""A branch of a table as a change or a compaction has read it. On the driver only."""
