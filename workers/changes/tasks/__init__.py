"""The tasks of a change: rows read, rows and deleted positions written. Format only."""
