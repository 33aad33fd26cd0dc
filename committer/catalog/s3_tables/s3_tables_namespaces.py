"""Namespaces of a table bucket: each call, with the service's errors told apart.

They have one level and no properties.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from committer.aws.client_errors import AWS_ERRORS, code_of
from committer.catalog.namespaces import Namespace, existing_name, no_namespace, not_empty
from committer.catalog.s3_tables.s3_tables_errors import (
    CONFLICT,
    NOT_FOUND,
    explained,
    frazil_error,
    no_bucket,
)
from committer.catalog.s3_tables.s3_tables_layout import is_name, namespace_name

if TYPE_CHECKING:
    from types_aiobotocore_s3tables import S3TablesClient


async def add_namespace(client: S3TablesClient, bucket: str, namespace: Namespace) -> None:
    """Create a namespace; one that is there stays as it is."""
    name = namespace_name(namespace)
    try:
        await client.create_namespace(tableBucketARN=bucket, namespace=[name])
    except AWS_ERRORS as error:
        if code_of(error) == NOT_FOUND:
            raise no_bucket(bucket) from error
        if code_of(error) != CONFLICT:
            raise frazil_error(error, client, "CreateNamespace", name) from error


async def delete_namespace(client: S3TablesClient, bucket: str, namespace: Namespace) -> None:
    """Delete a namespace without tables; the service refuses one with a table, too."""
    if await read_tables(client, bucket, namespace):
        raise not_empty(namespace)
    name = namespace_name(namespace)
    absent, conflict = no_namespace(namespace), not_empty(namespace)
    with explained(client, "DeleteNamespace", name, absent=absent, conflict=conflict):
        await client.delete_namespace(tableBucketARN=bucket, namespace=name)


async def read_namespaces(client: S3TablesClient, bucket: str) -> list[Namespace]:
    """List all namespaces, sorted."""
    with explained(client, "ListNamespaces", bucket, absent=no_bucket(bucket)):
        pages = client.get_paginator("list_namespaces").paginate(tableBucketARN=bucket)
        found = [one["namespace"][0] async for page in pages for one in page["namespaces"]]
    return [(name,) for name in sorted(found)]


async def read_tables(client: S3TablesClient, bucket: str, namespace: Namespace) -> list[str]:
    """List the names of all tables, sorted; also those that were reserved and never created."""
    name = existing_name(namespace, is_name)
    with explained(client, "ListTables", name, absent=no_namespace(namespace)):
        pages = client.get_paginator("list_tables").paginate(tableBucketARN=bucket, namespace=name)
        return sorted([one["name"] async for page in pages for one in page["tables"]])


async def require_namespace(client: S3TablesClient, bucket: str, namespace: Namespace) -> None:
    """Look for a namespace. Absent, also because none can be called so: `NoSuchNamespaceError`."""
    name = existing_name(namespace, is_name)
    with explained(client, "GetNamespace", name, absent=no_namespace(namespace)):
        await client.get_namespace(tableBucketARN=bucket, namespace=name)
