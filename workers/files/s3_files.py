"""Data files on S3, by pyarrow's own client. Runs on executors.

Credentials are those that a catalog has vended for the table, for a short time; else they are found
where every AWS tool finds them, on each executor for itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from committer.errors import UnsupportedError
from workers.files.object_files import ObjectFiles

if TYPE_CHECKING:
    from pyarrow import fs

_S3 = re.compile(r"s3[an]?://([^/]+/.*)")


# Each micro-batch may bring new keys; the clients of the old ones are of no use.
_CLIENTS_MAX = 8


@dataclass(frozen=True, slots=True)
class VendedKeys:
    """Temporary keys that a catalog has vended for the files of one table: the only ones that
    travel with a task. There is no place for keys without a token and an end.
    """

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str = field(repr=False)
    expires_ms: int


@dataclass(frozen=True, slots=True)
class S3Access:
    """The address of S3, as the driver knows it: what travels with the tasks. An empty text leaves
    what the executor's own AWS settings say, and so do no keys.
    """

    region: str = ""
    endpoint_url: str = ""
    is_virtual: bool = False
    """Whether the bucket stands in the host name of an endpoint that is not AWS."""
    keys: VendedKeys | None = None


class S3Files(ObjectFiles):
    """Objects by location: `s3://…`, `s3a://…` or `s3n://…`."""

    def __init__(self, access: S3Access) -> None:
        super().__init__(_connect(access), s3_path)


def is_s3(location: str) -> bool:
    """Return whether a location is on S3."""
    return _S3.fullmatch(location) is not None


def s3_path(location: str) -> str:
    """Return `bucket/key`, the key letter for letter.
    Errors: `UnsupportedError` for any other place."""
    match = _S3.fullmatch(location)
    if match is None:
        raise UnsupportedError(f"location {location}: expected s3://BUCKET/…")
    return match[1]


@lru_cache(maxsize=_CLIENTS_MAX)
def _connect(access: S3Access) -> fs.S3FileSystem:
    """Connect once a process: the client keeps connections, and renews by itself the credentials
    that it has found by itself.
    """
    from pyarrow import fs  # a process that only names the store loads no Arrow

    endpoint, keys = urlsplit(access.endpoint_url), access.keys
    return fs.S3FileSystem(
        access_key=keys and keys.access_key_id,
        secret_key=keys and keys.secret_access_key,
        session_token=keys and keys.session_token,
        region=access.region or None,
        scheme=endpoint.scheme or None,
        endpoint_override=endpoint.netloc or None,
        force_virtual_addressing=access.is_virtual,
        # A small file is one request instead of three.
        allow_delayed_open=True,
    )
