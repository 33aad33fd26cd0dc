"""A catalog behind Iceberg's REST protocol: the port (`rest_catalog`), creation, namespaces, vended
credentials, and the swap with its answers (`rest_swap`).

HTTP, tokens and paths are in `client`, not here.
"""
