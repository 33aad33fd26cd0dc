"""Catalogs: names of tables and the conditional swap of their pointers, one module a back end."""
