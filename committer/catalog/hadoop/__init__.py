"""Tables of a file system without a catalog server, in the layout of Java's HadoopCatalog.

No catalog of another kind is known here.
"""
