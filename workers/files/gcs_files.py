"""Data files on Google Cloud Storage, by pyarrow's own client. Runs on executors.

The token is one that a catalog has vended for the table, for a short time; else the client finds
credentials where every Google tool does, on each executor for itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from committer.errors import UnsupportedError
from workers.files.object_files import ObjectFiles

if TYPE_CHECKING:
    from pyarrow import fs

_GCS = re.compile(r"gs://([^/]+/.*)")
# Each micro-batch may bring a new token; the clients of the old ones are of no use.
_CLIENTS_MAX = 8
# pyarrow would try for a quarter of an hour.
_TRIES_AT_MOST = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class VendedToken:
    """A token that a catalog has vended for the files of one table: the only one that travels with
    a task. There is no place for a token without an end.
    """

    text: str = field(repr=False)
    expires_ms: int


@dataclass(frozen=True, slots=True)
class GcsAccess:
    """The address of Google Cloud Storage, as the driver knows it: what travels with the tasks. An
    empty host is Google's.
    """

    host: str = ""
    is_anonymous: bool = False
    token: VendedToken | None = None


class GcsFiles(ObjectFiles):
    """Objects by location: `gs://…`."""

    def __init__(self, access: GcsAccess) -> None:
        super().__init__(_connect(access), gcs_path)


def is_gcs(location: str) -> bool:
    """Return whether a location is on Google Cloud Storage."""
    return _GCS.fullmatch(location) is not None


def gcs_path(location: str) -> str:
    """Return `bucket/key`, the key letter for letter.
    Errors: `UnsupportedError` for any other place."""
    match = _GCS.fullmatch(location)
    if match is None:
        raise UnsupportedError(f"location {location}: expected gs://BUCKET/…")
    return match[1]


@lru_cache(maxsize=_CLIENTS_MAX)
def _connect(access: GcsAccess) -> fs.GcsFileSystem:
    """Connect once a process."""
    from pyarrow import fs  # a process that only names the store loads no Arrow

    host, token = urlsplit(access.host), access.token
    ends = token and datetime.fromtimestamp(token.expires_ms / 1000, UTC).replace(tzinfo=None)
    return fs.GcsFileSystem(
        anonymous=access.is_anonymous and token is None,
        access_token=token and token.text,
        credential_token_expiration=ends,
        scheme=host.scheme or None,
        endpoint_override=host.netloc or None,
        retry_time_limit=_TRIES_AT_MOST,
    )
