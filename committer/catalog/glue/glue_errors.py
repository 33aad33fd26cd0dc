"""Classifies Glue's own errors for the catalog. Those of all AWS services: `client_errors`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from committer.aws.client_errors import AWS_ERRORS, brief, code_of, explain, surely_not_applied
from committer.errors import CatalogUnavailableError, FrazilError

if TYPE_CHECKING:
    from types_aiobotocore_glue import GlueClient

ALREADY_EXISTS = "AlreadyExistsException"
NOT_FOUND = "EntityNotFoundException"
CONCURRENT = "ConcurrentModificationException"

# Glue says each of them with an HTTP 400 although it, or the catalog behind it, may have applied
# the call. `ConcurrentModificationException` meets single writers too, whose first delivery won.
_IN_DOUBT = frozenset(
    {
        CONCURRENT,
        "FederationSourceException",
        "FederationSourceRetryableException",
        "InternalServiceException",
        "OperationTimeoutException",
    }
)
# Another call was in the way.
_PASSING = _IN_DOUBT | {"ResourceNotReadyException"}


def is_refused(error: Exception) -> bool:
    """Return whether Glue has surely not applied the call."""
    return code_of(error) not in _IN_DOUBT and surely_not_applied(error)


@contextmanager
def explained(
    client: GlueClient, action: str, about: object, *, absent: FrazilError | None = None
) -> Iterator[None]:
    """Translate the errors of a call. `absent`: the error for what Glue does not find."""
    try:
        yield
    except AWS_ERRORS as error:
        if absent is not None and code_of(error) == NOT_FOUND:
            raise absent from error
        raise frazil_error(error, client, action, about) from error


def frazil_error(error: Exception, client: GlueClient, action: str, about: object) -> FrazilError:
    """Return the error to raise for a call that was surely not applied, or that may be repeated."""
    what = f"glue:{action} of {about} in region {client.meta.region_name}"
    if code_of(error) in _PASSING:
        return CatalogUnavailableError(f"{what}: {brief(error)}")
    return explain(error, what, CatalogUnavailableError)
