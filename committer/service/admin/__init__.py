"""Changes that an operator asks for, and searches on an operator's behalf.

Called by the command, never by the running service.
"""
