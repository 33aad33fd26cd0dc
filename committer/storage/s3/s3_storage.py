"""Objects on Amazon S3, and on servers that speak its protocol and enforce conditional writes.

How the promises of the port are kept:

* Create-only is `If-None-Match: *`, a replacement `If-Match`. The server decides; `probe` finds out
  one that does not.
* A condition that failed may be this write's own success (`failed_condition`): the object is asked
  who wrote it (`head`, `s3_writes.MARK`).
* Everything else may be repeated. A call that was given up may still take effect later.
* Bytes are sent with a CRC32, which the server checks, keeps, and sends along with whole objects;
  the client then checks it again.

An etag stands for a content here: equal bytes get equal etags, also after another content. A
replacement then finds what its writer saw, though others may have been there in between.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from copy import copy
from dataclasses import dataclass
from dataclasses import replace as changed
from datetime import datetime
from typing import TYPE_CHECKING, TypedDict

from committer.aws.client import AwsOptions, read_body
from committer.aws.client_errors import AWS_ERRORS, code_of, explain, is_passing, refusal, status_of
from committer.errors import (
    AccessError,
    FrazilError,
    NotFoundError,
    ObjectTooLargeError,
    SettingsError,
    StorageUnavailableError,
)
from committer.ports.skips import Skips
from committer.ports.storage import NewObject, ObjectInfo, require_size
from committer.ports.world import World
from committer.storage.failed_condition import Marked, RefusedWrite, settle_failed_condition
from committer.storage.object_location import ObjectLocation
from committer.storage.probe import prove_conditions
from committer.storage.repeated_calls import Tries, for_each
from committer.storage.s3.s3_calls import S3Calls, S3Limits
from committer.storage.s3.s3_location import S3_LOCATIONS
from committer.storage.s3.s3_writes import MARK, Write, send_write

if TYPE_CHECKING:
    from types_aiobotocore_s3 import S3Client
    from types_aiobotocore_s3.type_defs import (
        GetObjectOutputTypeDef,
        HeadObjectOutputTypeDef,
        ListObjectsV2OutputTypeDef,
    )

_USUAL = S3Limits()


class S3Storage:
    """Serves `s3://bucket/key`, also spelled `s3a:` and `s3n:`. No I/O before the first call."""

    def __init__(self, options: AwsOptions, *, world: World, limits: S3Limits = _USUAL) -> None:
        self._world = world
        self._limits = limits
        self._at_once_max = options.connections_max
        self._calls = S3Calls(options, world, limits)

    async def get(
        self,
        location: str,
        *,
        offset: int = 0,
        length: int | None = None,
        size_bytes_max: int | None = None,
    ) -> bytes:
        at = S3_LOCATIONS.parse_existing(location)
        if length == 0:
            found = await self._head(location, at)
            require_size(location, found["ContentLength"], size_bytes_max)
            return b""
        try:
            return await self._calls.send(
                lambda client: _get(client, at, offset, length, size_bytes_max)
            )
        except AWS_ERRORS as error:
            if status_of(error) == 416:  # the range begins behind the object's end
                return b""
            raise _explain_read(error, "GET", location) from error

    async def head(self, location: str) -> ObjectInfo:
        found = await self._head(location, S3_LOCATIONS.parse_existing(location))
        modified_ms = _milliseconds(found["LastModified"])
        return ObjectInfo(location, found["ContentLength"], modified_ms, found["ETag"])

    async def create(self, objects: Sequence[NewObject]) -> None:
        places = [(created, S3_LOCATIONS.parse_object(created.location)) for created in objects]

        async def create(place: tuple[NewObject, ObjectLocation]) -> None:
            created, at = place
            await self._write(created.location, at, created.content, None)

        await for_each(places, create, at_once_max=self._at_once_max)

    async def replace(self, location: str, content: bytes, *, etag: str | None) -> str:
        return await self._write(location, S3_LOCATIONS.parse_object(location), content, etag)

    async def delete(self, locations: Sequence[str]) -> None:
        chunks = _chunks(locations, self._limits.deleted_max)
        await for_each(chunks, self._delete, at_once_max=self._at_once_max)

    async def list(self, prefix: str, *, skips: Skips | None = None) -> AsyncIterator[ObjectInfo]:
        folder = S3_LOCATIONS.parse_folder(prefix)
        base = prefix if prefix.endswith("/") else f"{prefix}/"
        where: _Page | None = {}
        while where is not None:
            page = await self._list(prefix, folder, where)
            for found in page.get("Contents", ()):
                key = found["Key"]
                # Other tools mark folders by empty objects whose keys end with a slash.
                if not key.endswith("/"):
                    modified_ms = _milliseconds(found["LastModified"])
                    location = base + key[len(folder.key) :]
                    yield ObjectInfo(location, found["Size"], modified_ms, found["ETag"])
            where = _after(page, where)

    async def names(self, folder: str, *, starts_with: str = "") -> Sequence[str]:
        at = S3_LOCATIONS.parse_folder(folder)
        start = changed(at, key=at.key + starts_with)
        found: set[str] = set()
        where: _Page | None = {"Delimiter": "/"}
        while where is not None:
            page = await self._list(folder, start, where)
            found.update(one["Key"][len(at.key) :] for one in page.get("Contents", ()))
            found.update(one["Prefix"][len(at.key) :] for one in page.get("CommonPrefixes", ()))
            where = _after(page, where)
        # Other tools mark folders by empty objects of their name: that of this one is left.
        return sorted(found - {""})

    async def probe(self, prefix: str) -> None:
        """Probe the server, also for objects written in parts,
        for which it may forget its conditions."""
        location = f"{prefix.removesuffix('/')}/frazil-probe-{self._world.uuid()}"
        await prove_conditions(self, location)
        in_parts = copy(self)
        in_parts._limits = changed(self._limits, multipart_bytes_min=1)
        await prove_conditions(in_parts, f"{location}-in-parts")

    async def close(self) -> None:
        await self._calls.close()

    # --- Steps ---

    async def _head(self, location: str, at: ObjectLocation) -> HeadObjectOutputTypeDef:
        """Send a HEAD; its answers have no body, so a GET must tell the reason of a refusal."""
        try:
            return await self._calls.send(
                lambda client: client.head_object(Bucket=at.bucket, Key=at.key)
            )
        except AWS_ERRORS as error:
            if is_passing(error) or not status_of(error):
                raise explain(error, f"HEAD `{location}`", StorageUnavailableError) from error
        try:
            await self._calls.send(lambda client: _get(client, at, 0, 1, None))
        except AWS_ERRORS as error:
            if status_of(error) != 416:
                raise _explain_read(error, "HEAD", location) from error
        raise StorageUnavailableError(f"HEAD `{location}`: it came meanwhile")

    async def _list(
        self, prefix: str, folder: ObjectLocation, where: _Page
    ) -> ListObjectsV2OutputTypeDef:
        try:
            return await self._calls.send(
                lambda client: client.list_objects_v2(
                    Bucket=folder.bucket,
                    Prefix=folder.key,
                    MaxKeys=self._limits.listed_max,
                    **where,
                )
            )
        except AWS_ERRORS as error:
            raise explain(error, f"LIST `{prefix}`", StorageUnavailableError) from error

    async def _write(
        self, location: str, at: ObjectLocation, content: bytes, etag: str | None
    ) -> str:
        write = Write(at, content, etag, str(self._world.uuid()))
        tries = Tries()
        try:
            return await send_write(self._calls, self._limits, write, tries)
        except AWS_ERRORS as error:
            if not _is_failed_condition(error, tries):
                raise _explain_write(error, location) from error
        refused = RefusedWrite(location, etag, write.mark, tries.in_doubt)
        return await settle_failed_condition(refused, lambda: self._marked(location, at))

    async def _marked(self, location: str, at: ObjectLocation) -> Marked:
        found = await self._head(location, at)
        return Marked(found["ETag"], found["Metadata"].get(MARK))

    async def _delete(self, chunk: _Chunk) -> None:
        try:
            await self._calls.send(lambda client: _delete(client, chunk))
        except AWS_ERRORS as error:
            first, *others = chunk.left.values()
            what = f"DELETE `{first}`" + (f" and {len(others)} more" if others else "")
            raise explain(error, what, StorageUnavailableError) from error


# --- Calls ---------------------------------------------------------------------------------------


class _Page(TypedDict, total=False):
    """Where a page of a listing begins: after the last one, or (empty) with the first key. With a
    delimiter, keys that have it behind the prefix count as one.
    """

    ContinuationToken: str
    Delimiter: str


def _after(page: ListObjectsV2OutputTypeDef, where: _Page) -> _Page | None:
    """Return where the next page begins; None after the last one."""
    if not page["IsTruncated"]:
        return None
    return {**where, "ContinuationToken": page["NextContinuationToken"]}


async def _get(
    client: S3Client,
    at: ObjectLocation,
    offset: int,
    length: int | None,
    size_bytes_max: int | None,
) -> bytes:
    if offset == 0 and length is None:
        answer = await client.get_object(Bucket=at.bucket, Key=at.key, ChecksumMode="ENABLED")
    else:
        last = "" if length is None else str(offset + length - 1)
        wanted = f"bytes={offset}-{last}"
        answer = await client.get_object(Bucket=at.bucket, Key=at.key, Range=wanted)
    try:
        require_size(f"s3://{at.bucket}/{at.key}", _whole_size(answer), size_bytes_max)
    except ObjectTooLargeError:
        answer["Body"].close()
        raise
    return await read_body(answer["Body"])


def _whole_size(answer: GetObjectOutputTypeDef) -> int:
    """Return the size of the object, also if a range of it was asked for: `bytes 0-9/4711`."""
    size = answer.get("ContentRange", "").rpartition("/")[2]
    return int(size) if size.isdecimal() else answer["ContentLength"]


@dataclass(slots=True)
class _Chunk:
    """Keys of a bucket that are still to be deleted, and how their locations were spelled."""

    bucket: str
    left: dict[str, str]


def _chunks(locations: Sequence[str], size_max: int) -> list[_Chunk]:
    buckets: dict[str, dict[str, str]] = {}
    for location in locations:
        at = S3_LOCATIONS.parse_object(location)
        buckets.setdefault(at.bucket, {})[at.key] = location
    return [
        _Chunk(bucket, dict(keys[start : start + size_max]))
        for bucket, named in buckets.items()
        for keys in (list(named.items()),)
        for start in range(0, len(keys), size_max)
    ]


async def _delete(client: S3Client, chunk: _Chunk) -> None:
    """Delete the keys, of which those that were refused stay in the chunk: the worst one first."""
    answer = await client.delete_objects(
        Bucket=chunk.bucket,
        Delete={"Objects": [{"Key": key} for key in chunk.left], "Quiet": True},
    )
    refused = [
        (refusal(found.get("Code", ""), found.get("Message", "")), found["Key"])
        for found in answer.get("Errors", ())
        if found.get("Code") != "NoSuchKey"
    ]
    refused.sort(key=lambda one: is_passing(one[0]))
    chunk.left = {key: chunk.left.get(key, key) for _, key in refused}
    if refused:
        raise refused[0][0]


def _milliseconds(time: datetime) -> int:
    """Return milliseconds of whole seconds:
    listings of some servers have more digits, HEAD has none."""
    return int(time.timestamp()) * 1000


# --- Refusals ------------------------------------------------------------------------------------


def _is_failed_condition(error: Exception, tries: Tries) -> bool:
    """Return whether a condition failed; also if the object to be replaced does not exist. Or the
    parts are, which an earlier try has joined.
    """
    if code_of(error) == "NoSuchUpload":
        return tries.in_doubt
    return status_of(error) == 412 or code_of(error) == "NoSuchKey"


def _explain_read(error: Exception, call: str, location: str) -> FrazilError:
    if code_of(error) == "NoSuchKey":
        return NotFoundError(f"`{location}` does not exist")
    explained = explain(error, f"{call} `{location}`", StorageUnavailableError)
    if code_of(error) == "AccessDenied":
        return AccessError(
            f"{explained}; or the object does not exist, which S3 tells only to those who may list"
            " the bucket (s3:ListBucket)"
        )
    return explained


def _explain_write(error: Exception, location: str) -> FrazilError:
    if status_of(error) == 501:
        return SettingsError(
            f"PUT `{location}`: the server knows no conditional writes ({code_of(error)}), so it"
            " cannot be used"
        )
    if code_of(error) == "NoSuchUpload":
        return StorageUnavailableError(f"PUT `{location}`: its upload was aborted")
    return explain(error, f"PUT `{location}`", StorageUnavailableError)
