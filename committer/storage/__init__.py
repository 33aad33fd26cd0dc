"""Storage adapters, and what is kept on them: the inbox and the quarantine.

No adapter knows a catalog, and none reads settings.
"""
