"""How the parts of a rewrite are published, of data files and of delete files alike."""
