"""Data files on S3, by pyarrow's own client. Runs on executors.

An object exists, whole, once its file is closed. A process that dies before leaves none (S3 may
keep the parts of a large one until a lifecycle rule of the bucket removes them). Credentials are
those that a catalog has vended for the table, for a short time; else they are found where every AWS
tool finds them, on each executor for itself.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import fs

from committer.errors import AlreadyExistsError, UnsupportedError

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
    """Where S3 is, as the driver knows it: what travels with the tasks. An empty text leaves what
    the executor's own AWS settings say, and so do no keys.
    """

    region: str = ""
    endpoint_url: str = ""
    is_virtual: bool = False
    """Whether the bucket stands in the host name of an endpoint that is not AWS."""
    keys: VendedKeys | None = None


USUAL_S3 = S3Access()


class S3Files:
    """Objects by location: `s3://…`, `s3a://…` or `s3n://…`. A `FileSystem`."""

    def __init__(self, access: S3Access) -> None:
        self._s3 = _connect(access)

    def create(self, location: str) -> pa.NativeFile:
        """Create a file, as `FileSystem.create`.
        Two concurrent writers of one location are not detected.
        """
        path = s3_path(location)
        if self._is_taken(path):
            raise AlreadyExistsError(f"data file {location} exists already")
        return self._s3.open_output_stream(path)

    def make_durable(self, locations: Iterable[str]) -> None:
        """Do nothing: an object is durable once it is there."""

    def delete(self, location: str) -> None:
        """Delete a file; if the folder gets empty, pyarrow leaves an empty object as its marker."""
        with contextlib.suppress(FileNotFoundError):
            self._s3.delete_file(s3_path(location))

    def read(self, location: str) -> bytes:
        """Read a whole object. Errors: `OSError`."""
        with self._s3.open_input_stream(s3_path(location)) as stream:
            return bytes(stream.read())

    def _is_taken(self, path: str) -> bool:
        try:
            self._s3.open_input_file(path).close()
        except OSError:
            # It does not exist; or the check is forbidden or fails: then the upload reports the
            # error.
            return False
        return True


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
