"""Parses locations on S3: `s3://bucket/key`, also spelled `s3a:` and `s3n:` as Hadoop does.

A key is taken literally: nothing in it is decoded, joined or dropped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from committer.errors import NotFoundError, SettingsError

SCHEMES = ("s3", "s3a", "s3n")
_LOCATION = re.compile(
    r"(s3|s3a|s3n)://([A-Za-z0-9._-]{1,255})(?:/(.*))?", re.IGNORECASE | re.DOTALL
)
_KEY_BYTES_MAX = 1024
# Characters that XML cannot hold: such a key could be written, but neither listed nor deleted.
_UNSPEAKABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class S3Location:
    """A bucket, and a key in it or, of a folder, the start of its keys."""

    bucket: str
    key: str


def parse_object(location: str) -> S3Location:
    """Parse an object's location.
    Errors: `SettingsError` for one that is no `s3://bucket/key` that an object can have."""
    bucket, key = _split(location)
    if problem := _problem(key):
        raise SettingsError(f"location {location!r}: {problem}")
    return S3Location(bucket, key)


def parse_existing(location: str) -> S3Location:
    """Parse a location for reads, as `parse_object`:
    `NotFoundError` for a key that no object can have."""
    bucket, key = _split(location)
    if problem := _problem(key):
        raise NotFoundError(f"location {location!r}: {problem}")
    return S3Location(bucket, key)


def parse_folder(location: str) -> S3Location:
    """Parse a folder's location: the keys below it start with `key`,
    which is empty or ends with a slash."""
    bucket, key = _split(location)
    if key and not key.endswith("/"):
        key += "/"
    if problem := _problem(f"{key}-"):
        raise SettingsError(f"location {location!r}: {problem}")
    return S3Location(bucket, key)


def _split(location: str) -> tuple[str, str]:
    match = _LOCATION.fullmatch(location)
    if match is None:
        raise SettingsError(f"location {location!r}: expected `s3://bucket/key`")
    return match[2], match[3] or ""


def _problem(key: str) -> str | None:
    """Return why no object can have this key; None if one can."""
    if not key or key.endswith("/"):
        return "expected an object, `s3://bucket/key`"
    if _UNSPEAKABLE.search(key):
        return "no object can have this key"
    if len(key.encode()) > _KEY_BYTES_MAX:
        return f"a key has at most {_KEY_BYTES_MAX} bytes"
    return None
