"""Namespaces of a table bucket: each call, with the service's errors told apart.

They have one level and no properties.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from committer.aws.client_errors import AWS_ERRORS, code_of
from committer.catalog.namespaces import Namespace, join_namespace, not_empty
from committer.catalog.s3_tables.s3_tables_errors import (
    CONFLICT,
    NOT_FOUND,
    frazil_error,
    no_bucket,
    no_namespace,
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
    try:
        await client.delete_namespace(tableBucketARN=bucket, namespace=name)
    except AWS_ERRORS as error:
        if code_of(error) == NOT_FOUND:
            raise no_namespace(namespace) from error
        if code_of(error) == CONFLICT:
            raise not_empty(namespace) from error
        raise frazil_error(error, client, "DeleteNamespace", name) from error


async def read_namespaces(client: S3TablesClient, bucket: str) -> list[Namespace]:
    """List all namespaces, sorted."""
    found: list[str] = []
    page: dict[str, Any] = {"tableBucketARN": bucket}
    while page:
        try:
            answer = await client.list_namespaces(**page)
        except AWS_ERRORS as error:
            if code_of(error) == NOT_FOUND:
                raise no_bucket(bucket) from error
            raise frazil_error(error, client, "ListNamespaces", bucket) from error
        found.extend(one["namespace"][0] for one in answer["namespaces"])
        page = _next(page, answer)
    return [(name,) for name in sorted(found)]


async def read_tables(client: S3TablesClient, bucket: str, namespace: Namespace) -> list[str]:
    """List the names of all tables, sorted; also those that were reserved and never created."""
    found: list[str] = []
    page: dict[str, Any] = {"tableBucketARN": bucket, "namespace": _existing(namespace)}
    while page:
        try:
            answer = await client.list_tables(**page)
        except AWS_ERRORS as error:
            if code_of(error) == NOT_FOUND:
                raise no_namespace(namespace) from error
            raise frazil_error(error, client, "ListTables", page["namespace"]) from error
        found.extend(one["name"] for one in answer["tables"])
        page = _next(page, answer)
    return sorted(found)


async def require_namespace(client: S3TablesClient, bucket: str, namespace: Namespace) -> None:
    """Look for a namespace. Absent, also because none can be called so: `NoSuchNamespaceError`."""
    name = _existing(namespace)
    try:
        await client.get_namespace(tableBucketARN=bucket, namespace=name)
    except AWS_ERRORS as error:
        if code_of(error) == NOT_FOUND:
            raise no_namespace(namespace) from error
        raise frazil_error(error, client, "GetNamespace", name) from error


def _existing(namespace: Namespace) -> str:
    """Return the name of a namespace. One that none can have is that of an absent one."""
    text = join_namespace(namespace)
    if not is_name(text):
        raise no_namespace(namespace)
    return text


def _next(page: dict[str, Any], answer: Any) -> dict[str, Any]:
    """Return the call for the next page; empty after the last."""
    token = answer.get("continuationToken")
    return {**page, "continuationToken": token} if token else {}
