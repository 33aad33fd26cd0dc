"""Conditional writes to S3, in one piece or in parts. `s3` interprets their refusals.

Each write carries a mark of its own in the object's user metadata, so that its own object is
recognized later, even where other writers write equal bytes.
"""

from __future__ import annotations

import asyncio
import base64
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from committer.aws.client_errors import AWS_ERRORS, code_of
from committer.errors import InvariantError
from committer.storage.object_storage import Write
from committer.storage.repeated_calls import Tries, for_each
from committer.storage.s3.s3_calls import S3Calls, S3Limits

if TYPE_CHECKING:
    from types_aiobotocore_s3.type_defs import CompletedPartTypeDef

MARK = "frazil-write"
_PARTS_MAX = 10_000
_UPLOADS_MAX = 3


class _Condition(TypedDict, total=False):
    IfMatch: str
    IfNoneMatch: str


def _condition(write: Write) -> _Condition:
    return {"IfNoneMatch": "*"} if write.etag is None else {"IfMatch": write.etag}


@dataclass(frozen=True, slots=True)
class _Part:
    number: int
    start: int
    stop: int


async def send_write(calls: S3Calls, limits: S3Limits, write: Write, tries: Tries) -> str:
    """Write and return the new etag. Errors: those of `AWS_ERRORS`, also for a failed condition."""
    if len(write.content) < limits.multipart_bytes_min:
        return await _put(calls, write, tries)
    for left in reversed(range(_UPLOADS_MAX)):
        try:
            return await _upload(calls, limits, write, tries)
        except AWS_ERRORS as error:
            if not (left and _is_raced(error)):
                raise
    raise InvariantError("the last upload has neither returned nor raised")


def _is_raced(error: Exception) -> bool:
    """Return whether another write of the object was under way.
    An upload in parts then begins anew."""
    return code_of(error) == "ConditionalRequestConflict"


async def _put(calls: S3Calls, write: Write, tries: Tries) -> str:
    checksum = _crc32(write.content)
    answer = await calls.send(
        lambda client: client.put_object(
            Bucket=write.at.bucket,
            Key=write.at.key,
            Body=write.content,
            ChecksumCRC32=checksum,
            Metadata={MARK: write.mark},
            **_condition(write),
        ),
        tries,
    )
    return answer["ETag"]


async def _upload(calls: S3Calls, limits: S3Limits, write: Write, tries: Tries) -> str:
    """Write in parts, and abort the upload on an error, unless the server is unavailable."""
    created = await calls.send(
        lambda client: client.create_multipart_upload(
            Bucket=write.at.bucket,
            Key=write.at.key,
            ChecksumAlgorithm="CRC32",
            ChecksumType="FULL_OBJECT",
            Metadata={MARK: write.mark},
        )
    )
    upload_id = created["UploadId"]
    try:
        parts = await _upload_parts(calls, limits, write, upload_id)
        return await _complete(calls, write, upload_id, parts, tries)
    except BaseException:
        # A storage that cannot be reached keeps the parts until its own rules remove them.
        with suppress(*AWS_ERRORS):
            await calls.send(
                lambda client: client.abort_multipart_upload(
                    Bucket=write.at.bucket, Key=write.at.key, UploadId=upload_id
                )
            )
        raise


async def _upload_parts(
    calls: S3Calls, limits: S3Limits, write: Write, upload_id: str
) -> list[CompletedPartTypeDef]:
    done: dict[int, CompletedPartTypeDef] = {}

    async def upload(part: _Part) -> None:
        content = write.content[part.start : part.stop]
        checksum = _crc32(content)
        answer = await calls.send(
            lambda client: client.upload_part(
                Bucket=write.at.bucket,
                Key=write.at.key,
                UploadId=upload_id,
                PartNumber=part.number,
                Body=content,
                ChecksumCRC32=checksum,
            )
        )
        done[part.number] = {
            "PartNumber": part.number,
            "ETag": answer["ETag"],
            "ChecksumCRC32": checksum,
        }

    parts = list(_cut(len(write.content), limits))
    await for_each(parts, upload, at_once_max=limits.parts_at_once_max)
    return [done[part.number] for part in parts]


async def _complete(
    calls: S3Calls,
    write: Write,
    upload_id: str,
    parts: list[CompletedPartTypeDef],
    tries: Tries,
) -> str:
    checksum = await asyncio.to_thread(_crc32, write.content)  # of all of it: half a second perhaps
    answer = await calls.send(
        lambda client: client.complete_multipart_upload(
            Bucket=write.at.bucket,
            Key=write.at.key,
            UploadId=upload_id,
            MultipartUpload={"Parts": parts},
            ChecksumCRC32=checksum,
            ChecksumType="FULL_OBJECT",
            **_condition(write),
        ),
        tries,
        unless=_is_raced,
    )
    return answer["ETag"]


def _cut(size_bytes: int, limits: S3Limits) -> Iterator[_Part]:
    part_bytes = max(limits.part_bytes, -(-size_bytes // _PARTS_MAX))
    for number, start in enumerate(range(0, size_bytes, part_bytes), start=1):
        yield _Part(number, start, start + part_bytes)


def _crc32(content: bytes) -> str:
    return base64.b64encode(zlib.crc32(content).to_bytes(4, "big")).decode()
