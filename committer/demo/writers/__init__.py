"""The Spark applications of the demo, and the events that they tell.

Nothing here starts a process: `programs` does.
"""
