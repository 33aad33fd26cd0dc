"""`frazil table` and its commands.

Commands that publish a request for a change are in `changes`, not here.
"""
