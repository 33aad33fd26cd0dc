"""The committer's part of a large commit as plain function calls, from request bytes on disk names.

The end-to-end times of `sizes` include the publishers' encoding. Here the requests are bytes in
memory already: read, check every entry, join the manifests, write and sync them. "Moved" skips the
check: it is the cost of moving blocks as they are, which no service does.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from bench import workload
from bench.child import Message, answer_lines
from committer.iceberg.metadata.table_metadata import TableMetadata, new_table_metadata
from committer.iceberg.schema.sort_order import UNSORTED
from committer.plan.batch.batch import Batch, Step, prepare_manifests
from committer.plan.batch.request_check import CheckBasis, CheckedRequest, Checker
from committer.request.commit_request import CommitRequest, Fingerprint, Producer
from committer.request.request_format import (
    EncodedRequest,
    inline_references,
    read_request,
    seal_request,
)
from committer.request.table_identifier import TableIdentifier
from committer.request.transaction import TableName
from committer.storage.disk import durable_writes
from workers.requests.written_epoch import WrittenEpoch, encode_manifests

_T = TypeVar("_T")


async def measure(*, files: int, requests: int, folder: str) -> Message:
    """Measure files a second of each step, of the checked way and of the moved one."""
    metadata = _metadata(f"file://{folder}/{uuid4()}")
    contents = [
        _seal(metadata, number, files // requests, files // 10).content
        for number in range(requests)
    ]
    gc.collect()
    gc.freeze()
    read_s, sealed = _timed(lambda: [read_request(each) for each in contents])
    check_s, checked = _timed(lambda: _check(metadata, sealed))
    batch = Batch((Step(checked, 1),), uuid4())
    join_s, prepared = _timed(lambda: prepare_manifests(batch, metadata))
    written = [each.written for each in prepared]
    write_s, (error,) = _timed(lambda: durable_writes.create_groups([written]))
    if error is not None:
        raise error
    gc.unfreeze()
    _remove(Path(folder))
    return {
        "read_files_per_s": files / read_s,
        "check_files_per_s": files / check_s,
        "join_files_per_s": files / join_s,
        "write_files_per_s": files / write_s,
        "checked_files_per_s": files / (read_s + check_s + join_s + write_s),
        "moved_files_per_s": files / (join_s + write_s),
    }


def _timed(work: Callable[[], _T]) -> tuple[float, _T]:
    before_s = time.monotonic()
    result = work()
    return time.monotonic() - before_s, result


def _check(metadata: TableMetadata, sealed: list[EncodedRequest]) -> tuple[CheckedRequest, ...]:
    checker = Checker(CheckBasis.of("bench", metadata), metadata.current_schema)
    results = [checker.check(each) for each in sealed]
    return tuple(each for each in results if isinstance(each, CheckedRequest))


def _metadata(location: str) -> TableMetadata:
    return new_table_metadata(
        table_uuid=uuid4(),
        location=location,
        schema=workload.schema(),
        partition_spec=workload.partition_spec(),
        sort_order=UNSORTED,
        properties={},
        format_version=2,
        now_ms=time.time_ns() // 1_000_000,
    )


def _seal(metadata: TableMetadata, number: int, files: int, files_a_day: int) -> EncodedRequest:
    start = number * files
    written = WrittenEpoch(
        identifier=TableIdentifier(("db",), "t"),
        table_uuid=metadata.require_uuid(),
        schema_id=metadata.current_schema_id,
        producer=Producer(id=f"writer-{number}", sequential=True),
        epoch=0,
        nonce=workload.nonce_of(start),
        fingerprint=Fingerprint(kind="bench", value=str(number)),
        files=(),
    )
    found = workload.descriptors(metadata.location, start, files, files_a_day)
    attempt = written.attempt
    written = replace(written, files=[workload.data_file(one, attempt) for one in found])
    manifests = encode_manifests(metadata, written)
    request = CommitRequest(
        catalog="bench",
        table=TableName(namespace=("db",), name="t"),
        table_uuid=written.table_uuid,
        producer=written.producer,
        epoch=written.epoch,
        nonce=written.nonce,
        attempt=written.attempt,
        fingerprint=written.fingerprint,
        published_at_ms=0,
        manifests=inline_references(manifests),
    )
    return seal_request(request, manifests)


def _remove(folder: Path) -> None:
    for found in folder.rglob("*.avro"):
        found.unlink()


if __name__ == "__main__":
    asyncio.run(answer_lines({"measure": measure}))
