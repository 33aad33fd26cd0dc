"""How the parts of a rewrite are published, of data files and of delete files alike.

Nothing is rewritten here.
"""
