"""Classifies errors of S3 Tables for the catalog. Those of all AWS services: `client_errors`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from committer.aws.client_errors import AWS_ERRORS, brief, code_of, explain
from committer.errors import AccessError, CatalogUnavailableError, FrazilError

if TYPE_CHECKING:
    from types_aiobotocore_s3tables import S3TablesClient

NOT_FOUND = "NotFoundException"
CONFLICT = "ConflictException"


@contextmanager
def explained(
    client: S3TablesClient,
    action: str,
    about: object,
    *,
    absent: FrazilError | None = None,
    conflict: FrazilError | None = None,
) -> Iterator[None]:
    """Translate the errors of a call. `absent`: the error for what the service does not find,
    `conflict`: the one for what it refuses for the state of things, if that means something.
    """
    try:
        yield
    except AWS_ERRORS as error:
        known = {NOT_FOUND: absent, CONFLICT: conflict}.get(code_of(error))
        raise known or frazil_error(error, client, action, about) from error


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
