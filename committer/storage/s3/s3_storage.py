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

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
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
from committer.ports.storage import require_deleted, require_size
from committer.ports.world import World
from committer.storage.object_location import ObjectLocation
from committer.storage.object_storage import ObjectStorage, ReadRange, StoredObject, Write
from committer.storage.probe import prove_conditions
from committer.storage.repeated_calls import Tries, failures_of_each
from committer.storage.s3.s3_calls import S3Calls, S3Limits
from committer.storage.s3.s3_location import S3_LOCATIONS
from committer.storage.s3.s3_writes import MARK, send_write

if TYPE_CHECKING:
    from types_aiobotocore_s3 import S3Client
    from types_aiobotocore_s3.type_defs import (
        GetObjectOutputTypeDef,
        ListObjectsV2OutputTypeDef,
    )

_USUAL = S3Limits()


class S3Storage(ObjectStorage):
    """Serves `s3://bucket/key`, also spelled `s3a:` and `s3n:`. No I/O before the first call."""

    def __init__(self, options: AwsOptions, *, world: World, limits: S3Limits = _USUAL) -> None:
        calls = S3Calls(options, world, limits)
        super().__init__(_S3Api(calls, limits), calls, world)
        in_parts = changed(limits, multipart_bytes_min=1)
        self._in_parts = ObjectStorage(_S3Api(calls, in_parts), calls, world)

    async def probe(self, prefix: str) -> None:
        """Probe the server, also for objects written in parts,
        for which it may forget its conditions."""
        location = f"{prefix.removesuffix('/')}/frazil-probe-{self._world.uuid()}"
        await prove_conditions(self, location)
        await prove_conditions(self._in_parts, f"{location}-in-parts")


class _S3Api:
    """One client of S3."""

    locations = S3_LOCATIONS

    def __init__(self, calls: S3Calls, limits: S3Limits) -> None:
        self._calls = calls
        self._limits = limits

    def can_be_etag(self, etag: str) -> bool:
        return True

    async def read(self, what: str, at: ObjectLocation, part: ReadRange) -> bytes:
        try:
            return await self._calls.send(lambda client: _get(client, at, part))
        except AWS_ERRORS as error:
            if status_of(error) == 416:  # the range begins behind the object's end
                return b""
            raise _explain_read(error, "GET", what) from error

    async def describe(self, what: str, at: ObjectLocation) -> StoredObject:
        """Send a HEAD; its answers have no body, so a GET must tell the reason of a refusal."""
        try:
            found = await self._calls.send(
                lambda client: client.head_object(Bucket=at.bucket, Key=at.key)
            )
        except AWS_ERRORS as error:
            if is_passing(error) or not status_of(error):
                raise explain(error, f"HEAD `{what}`", StorageUnavailableError) from error
        else:
            modified_ms, mark = _milliseconds(found["LastModified"]), found["Metadata"].get(MARK)
            return StoredObject(at.key, found["ContentLength"], modified_ms, found["ETag"], mark)
        try:
            await self._calls.send(lambda client: _get(client, at, ReadRange(0, 1, None)))
        except AWS_ERRORS as error:
            if status_of(error) != 416:
                raise _explain_read(error, "HEAD", what) from error
        raise StorageUnavailableError(f"HEAD `{what}`: it came meanwhile")

    async def write(self, what: str, write: Write, tries: Tries) -> str | None:
        try:
            return await send_write(self._calls, self._limits, write, tries)
        except AWS_ERRORS as error:
            if not _is_failed_condition(error, tries):
                raise _explain_write(error, what) from error
        return None

    async def delete(self, places: Mapping[ObjectLocation, str]) -> None:
        chunks = _chunks(places, self._limits.deleted_max)
        failed = await failures_of_each(chunks, self._delete, at_once_max=self._calls.at_once_max)
        if failed and not any(chunk.is_answered for chunk in chunks):
            raise failed[0][1]
        for chunk, error in failed:
            chunk.failures = dict.fromkeys(chunk.left.values(), error) | chunk.failures
        failures = {what: why for chunk in chunks for what, why in chunk.failures.items()}
        require_deleted(failures, places.values())

    async def _delete(self, chunk: _Chunk) -> None:
        try:
            await self._calls.send(lambda client: _delete(client, chunk))
        except AWS_ERRORS as error:
            first, *others = chunk.left.values()
            what = f"DELETE `{first}`" + (f" and {len(others)} more" if others else "")
            raise explain(error, what, StorageUnavailableError) from error

    async def list(self, what: str, folder: ObjectLocation) -> AsyncIterator[StoredObject]:
        async for page in self._pages(what, folder, {}):
            for found in page.get("Contents", ()):
                modified_ms = _milliseconds(found["LastModified"])
                yield StoredObject(found["Key"], found["Size"], modified_ms, found["ETag"])

    async def names(self, what: str, start: ObjectLocation) -> Sequence[str]:
        found: set[str] = set()
        async for page in self._pages(what, start, {"Delimiter": "/"}):
            found.update(one["Key"] for one in page.get("Contents", ()))
            found.update(one["Prefix"] for one in page.get("CommonPrefixes", ()))
        return list(found)

    async def _pages(
        self, what: str, folder: ObjectLocation, where: _Page
    ) -> AsyncIterator[ListObjectsV2OutputTypeDef]:
        while True:
            try:
                page = await self._calls.send(
                    lambda client: client.list_objects_v2(
                        Bucket=folder.bucket,
                        Prefix=folder.key,
                        MaxKeys=self._limits.listed_max,
                        **where,
                    )
                )
            except AWS_ERRORS as error:
                raise explain(error, f"LIST `{what}`", StorageUnavailableError) from error
            yield page
            if not page["IsTruncated"]:
                return
            where["ContinuationToken"] = page["NextContinuationToken"]


# --- Calls ---------------------------------------------------------------------------------------


class _Page(TypedDict, total=False):
    """The start of a page of a listing: after the last one, or (empty) with the first key. With a
    delimiter, keys that have it behind the prefix count as one.
    """

    ContinuationToken: str
    Delimiter: str


async def _get(client: S3Client, at: ObjectLocation, part: ReadRange) -> bytes:
    if part.is_whole:
        answer = await client.get_object(Bucket=at.bucket, Key=at.key, ChecksumMode="ENABLED")
    else:
        answer = await client.get_object(Bucket=at.bucket, Key=at.key, Range=part.header)
    try:
        require_size(f"s3://{at.bucket}/{at.key}", _whole_size(answer), part.size_bytes_max)
    except ObjectTooLargeError:
        answer["Body"].close()
        raise
    return await read_body(
        answer["Body"],
        size_bytes=answer["ContentLength"],
        read_timeout_s=client.meta.config.read_timeout,  # type: ignore[attr-defined]  # of its own
    )


def _whole_size(answer: GetObjectOutputTypeDef) -> int:
    """Return the size of the object, also if a range of it was asked for: `bytes 0-9/4711`."""
    size = answer.get("ContentRange", "").rpartition("/")[2]
    return int(size) if size.isdecimal() else answer["ContentLength"]


@dataclass(slots=True)
class _Chunk:
    """Keys of a bucket that are still to be deleted, and how their locations were spelled.

    `failures`: by location, why the last answer refused it. `is_answered`: whether the server has
    answered key by key.
    """

    bucket: str
    left: dict[str, str]
    failures: dict[str, FrazilError] = field(default_factory=dict)
    is_answered: bool = False


def _chunks(places: Mapping[ObjectLocation, str], size_max: int) -> list[_Chunk]:
    buckets: dict[str, dict[str, str]] = {}
    for at, location in places.items():
        buckets.setdefault(at.bucket, {})[at.key] = location
    return [
        _Chunk(bucket, dict(keys[start : start + size_max]))
        for bucket, named in buckets.items()
        for keys in (list(named.items()),)
        for start in range(0, len(keys), size_max)
    ]


async def _delete(client: S3Client, chunk: _Chunk) -> None:
    """Delete the keys; those whose refusal may pass stay in the chunk, and its error is raised."""
    answer = await client.delete_objects(
        Bucket=chunk.bucket,
        Delete={"Objects": [{"Key": key} for key in chunk.left], "Quiet": True},
    )
    refused = {
        item["Key"]: refusal(item.get("Code", ""), item.get("Message", ""))
        for item in answer.get("Errors", ())
        if item.get("Code") != "NoSuchKey"
    }
    chunk.is_answered = True
    for what in chunk.left.values():
        chunk.failures.pop(what, None)
    for key, error in refused.items():
        what = chunk.left.get(key, key)
        chunk.failures[what] = explain(error, f"DELETE `{what}`", StorageUnavailableError)
    passing = {key: error for key, error in refused.items() if is_passing(error)}
    chunk.left = {key: chunk.left.get(key, key) for key in passing}
    if passing:
        raise next(iter(passing.values()))


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
