"""Rows that a producer publishes to a running `frazil serve`: numbered, so that each is known."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io import FileIO

from committer.service.process.composition import Parts
from tests.support.builders.request_builders import build_file, build_line, build_manifest, seal
from tests.support.cli.commands import Frazil

ROWS = 10
COLUMNS = pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})])


def rows_from(first: int) -> pa.Table:
    """Return `ROWS` rows, numbered from `first`."""
    ids = list(range(first, first + ROWS))
    return pa.table({"id": pa.array(ids, pa.int64())}, schema=COLUMNS)


def publish(frazil: Frazil, io: FileIO, epoch: int) -> None:
    """Write a data file of `db.flights` with PyIceberg, and make a request for it durable."""
    loaded = frazil.load()
    line = build_line(loaded, epoch=epoch)
    file = build_file(loaded.metadata, line.attempt, record_count=ROWS)
    # Without a look whether it exists: pyarrow would list, which table buckets refuse.
    with io.new_output(file.file_path).create(overwrite=True) as stream:
        pq.write_table(rows_from(epoch * ROWS), stream)
    sealed = seal(line, [build_manifest(loaded.metadata, [file])])

    async def work(parts: Parts) -> None:
        await parts.inbox.put(sealed)

    frazil.with_parts(work)
