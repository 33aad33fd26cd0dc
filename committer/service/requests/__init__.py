"""A request in the service, and everything that is known of it outside of its table.

What becomes of it on its table is in `table`, not here.
"""
