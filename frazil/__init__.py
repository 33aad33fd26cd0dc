"""The public face of Frazil: what users import. `frazil.spark` configures writers on Spark.

Importing this package imports none of its parts, and no package that an extra brings.
"""
