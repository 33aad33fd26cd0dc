"""Settings and options of a writer, and where they are read. Nothing here imports Spark."""
