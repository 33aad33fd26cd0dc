"""AWS clients, what their errors mean, and how they get access.

Nothing here knows a catalog, a storage or a setting.
"""
