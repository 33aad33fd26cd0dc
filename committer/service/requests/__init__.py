"""A request in the service, and everything that is known of it outside of its table.

`table` decides whether it lands: nothing of that is here.
"""
