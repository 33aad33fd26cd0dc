"""The writes of a query as Spark runs them: batches, tasks, and the files of failed ones.

Formats of files are in `files`, and publishing is in `requests`, not here.
"""
