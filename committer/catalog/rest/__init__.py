"""A catalog behind Iceberg's REST protocol: HTTP and who may ask (`rest_client`, `rest_auth`),
names (`rest_paths`), the port (`rest_catalog`), the swap and its answers (`rest_swap`).
"""
