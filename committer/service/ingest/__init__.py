"""The way in: the queue consumer, the inbox reconciler, and the hand-over to table committers.

Nothing here decides whether a request may commit.
"""
