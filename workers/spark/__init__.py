"""Spark as a writer touches it: its JVM, its caches, the input of a task."""
