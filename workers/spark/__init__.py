"""Spark as a writer touches it: its JVM, its caches, the input of a task.

Nothing here knows a catalog or a request.
"""
