"""The rows of data files as Arrow: projected to a table's columns, deleted from and filtered.

Runs on executors: needs the table format and a way to open files, neither catalog nor settings.
"""
