"""The context that commands share: the chosen catalog, their options, the open session.

No command lives here.
"""
