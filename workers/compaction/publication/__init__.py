"""Publishes the parts of a rewrite, of data files and of delete files alike.

Nothing is rewritten here.
"""
