"""Classifies errors of S3 Tables for the catalog. Those of all AWS services: `client_errors`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from committer.aws.client_errors import brief, code_of, explain
from committer.catalog.namespaces import Namespace, join_namespace
from committer.errors import (
    AccessError,
    CatalogUnavailableError,
    FrazilError,
    NoSuchNamespaceError,
)

if TYPE_CHECKING:
    from types_aiobotocore_s3tables import S3TablesClient

NOT_FOUND = "NotFoundException"
CONFLICT = "ConflictException"


def frazil_error(
    error: Exception, client: S3TablesClient, action: str, about: object
) -> FrazilError:
    """Return the error to raise for a call that was surely not applied, or that may be repeated."""
    what = f"s3tables:{action} of {about} in region {client.meta.region_name}"
    match code_of(error):
        case "ForbiddenException":
            return AccessError(f"{what}: the role or user lacks the permission")
        case code if code == CONFLICT:
            return CatalogUnavailableError(f"{what}: another call is in the way: {brief(error)}")
    return explain(error, what, CatalogUnavailableError)


def no_bucket(bucket: str) -> AccessError:
    """Return the error for a table bucket that is not there."""
    return AccessError(
        f"there is no table bucket {bucket}: create it (`aws s3tables create-table-bucket`), or"
        " correct `warehouse`"
    )


def no_namespace(namespace: Namespace) -> NoSuchNamespaceError:
    """Return the error for a namespace that is not there."""
    return NoSuchNamespaceError(f"no namespace {join_namespace(namespace)}")
