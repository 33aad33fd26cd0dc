"""Catalogs: names of tables and the conditional swap of their pointers, one package each back end.

No adapter knows another one, and none plans a commit.
"""
