"""The checks of an operation against what has happened since the state that its client has read.

One module for each check, each a function of the head and of the change. No I/O.
"""
