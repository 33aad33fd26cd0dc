"""Commands that change a table in its turn: each publishes a request, and waits until a committer
has carried it out. They know the tables' commands, and add themselves to none.
"""
