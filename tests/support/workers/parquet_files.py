"""Builders of Parquet files that others might have written, in memory and on disk."""

from __future__ import annotations

import base64
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe

from committer.iceberg.schema.partition_spec import UNPARTITIONED, PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.sort_order import UNSORTED, SortOrder
from workers.adoption.adopt_file import Adopted, Empty, Refused, adopt_file
from workers.adoption.adoption_target import AdoptionTarget
from workers.adoption.footer import Footer, footer_bytes, parse_footer
from workers.arrow.arrow_types import FIELD_ID

FULL = {"write.metadata.metrics.default": "full"}


def parquet_bytes(table: pa.Table, **options: object) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    return bytes(sink.getvalue())


def footer_of(content: bytes) -> Footer:
    return parse_footer(content, footer_bytes(content, len(content)), len(content))


def with_ids(table: pa.Table, *ids: int) -> pa.Table:
    """Give the columns of a table field ids."""
    fields = [
        field.with_metadata({FIELD_ID: str(number)})
        for field, number in zip(table.schema, ids, strict=True)
    ]
    return table.cast(pa.schema(fields))


def target_of(
    schema: Schema,
    spec: PartitionSpec = UNPARTITIONED,
    *older: Schema,
    extra: bool = False,
    order: SortOrder = UNSORTED,
    **properties: str,
) -> AdoptionTarget:
    named = {key.replace("__", "."): value for key, value in properties.items()}
    return AdoptionTarget(schema, (*older, schema), spec, order, FULL | named, extra)


def adopt(
    content: bytes | pa.Table, target: AdoptionTarget, location: str = "file:///t/a.parquet"
) -> Adopted | Empty | Refused:
    if isinstance(content, pa.Table):
        content = parquet_bytes(content)
    return adopt_file(location, len(content), footer_of(content), target)


def problems(outcome: Adopted | Empty | Refused) -> tuple[str, ...]:
    assert isinstance(outcome, Refused), outcome
    return outcome.problems


class _OpenKeys(pe.KmsClient):  # type: ignore[misc]  # pyarrow ships no types
    """Keys that wrap nothing."""

    def __init__(self) -> None:
        pe.KmsClient.__init__(self)

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
        return base64.b64encode(key_bytes)

    def unwrap_key(self, wrapped_key: bytes, master_key_identifier: str) -> bytes:
        return base64.b64decode(wrapped_key)


def write_encrypted(path: Path, table: pa.Table, *, plaintext_footer: bool) -> None:
    factory = pe.CryptoFactory(lambda _: _OpenKeys())
    configuration = pe.EncryptionConfiguration(
        footer_key="footer",
        column_keys={"columns": table.column_names},
        plaintext_footer=plaintext_footer,
        cache_lifetime=timedelta(minutes=5),
        data_key_length_bits=128,
    )
    properties = factory.file_encryption_properties(pe.KmsConnectionConfig(), configuration)
    with pq.ParquetWriter(path, table.schema, encryption_properties=properties) as writer:
        writer.write_table(table)
