"""What tasks of a change do: rows read, rows and deleted positions written. Format only."""
