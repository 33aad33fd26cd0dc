"""Each property of a table that the writer does not follow is named once, and no other."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from uuid import UUID

import pytest

from committer.errors import UnsupportedError
from committer.iceberg.metadata.table_metadata import TableMetadata, new_table_metadata
from committer.iceberg.schema.partition_spec import UNPARTITIONED
from committer.iceberg.schema.sort_order import UNSORTED, SortField, SortOrder
from committer.iceberg.values.transforms import parse_transform
from committer.iceberg.values.types import LongType, StringType
from tests.support.workers.tables import optional, required, schema
from workers.sink.warnings import unheeded as module
from workers.sink.warnings.unheeded import unheeded, warn_of_unheeded

TABLE = schema(required(1, "id", LongType()), optional(2, "carrier", StringType()))
BY_CARRIER = SortOrder(
    1,
    (
        SortField((2,), parse_transform("zorder[8]"), "asc", "nulls-first"),
        SortField((1,), parse_transform("identity"), "desc", "nulls-last"),
    ),
)


@pytest.fixture(autouse=True)
def nobody_was_warned() -> Iterator[None]:
    module._warned.clear()
    yield
    module._warned.clear()


def table(
    properties: Mapping[str, str] | None = None, order: SortOrder = UNSORTED
) -> TableMetadata:
    return new_table_metadata(
        table_uuid=UUID(int=1),
        location="file:///t",
        schema=TABLE,
        partition_spec=UNPARTITIONED,
        sort_order=order,
        properties=dict(properties or {}),
        format_version=2,
        now_ms=0,
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("write.distribution-mode", "hash"),
        ("write.distribution-mode", "range"),
        ("write.orc.bloom.filter.columns", "id"),
        ("write.parquet.stats-enabled.column.id", "false"),
        ("write.location-provider.impl", "com.example.Places"),
        ("write.folder-storage.path", "s3://elsewhere/data"),
        ("write.upsert.enabled", "true"),
        ("write.of-next-year", "anything"),
    ],
)
def test_a_property_that_is_not_heeded_is_named_with_its_value(name: str, value: str) -> None:
    assert unheeded(table({name: value})) == [f"`{name}={value}`"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("write.distribution-mode", "none"),
        ("write.format.default", "Parquet"),
        ("write.format.default", "AVRO"),
        ("write.format.default", "orc"),
        ("write.orc.stripe-size-bytes", "1000"),
        ("write.orc.compression-codec", "zstd"),
        ("write.parquet.compression-codec", "zstd"),
        ("write.parquet.row-group-size-bytes", "1000"),
        ("write.target-file-size-bytes", "1000"),
        ("write.object-storage.enabled", "true"),
        ("write.data.path", "file:///elsewhere"),
        ("write.parquet.bloom-filter-enabled.column.id", "true"),
        ("write.parquet.page-row-limit", "100"),
        ("write.parquet.bloom-filter-max-bytes", "100"),
        ("write.metadata.metrics.default", "full"),
        ("write.metadata.previous-versions-max", "3"),
        ("write.delete.mode", "merge-on-read"),
        ("write.orc.compression-codec", "zlib"),
        ("write.wap.enabled", "true"),
        ("write.wap.enabled", "false"),
        ("frazil.expire.enabled", "true"),
        ("owner", "somebody"),
    ],
)
def test_what_is_heeded_or_is_no_writers_affair_is_not_named(name: str, value: str) -> None:
    assert unheeded(table({name: value})) == []


def test_a_sort_order_that_is_not_known_is_named_with_its_keys() -> None:
    assert unheeded(table(order=BY_CARRIER)) == [
        "sort order 1 (zorder[8](carrier) asc nulls-first, id desc nulls-last)"
    ]


def test_all_of_it_is_one_warning_once_a_query_and_again_when_it_changes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    asks = {"write.distribution-mode": "range", "write.upsert.enabled": "true"}
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            warn_of_unheeded("db.t", table(asks, BY_CARRIER), "checkpoint-1")
        (said,) = caplog.messages
        assert "sort order 1 (" in said
        assert "`write.distribution-mode=range`" in said
        assert "`write.upsert.enabled=true`" in said
        warn_of_unheeded("db.t", table(asks, BY_CARRIER), "checkpoint-2")
        warn_of_unheeded("db.t", table(asks), "checkpoint-1")
        warn_of_unheeded("db.u", table(asks), "checkpoint-1")
        warn_of_unheeded("db.u", table(), "checkpoint-1")
    assert len(caplog.messages) == 4


def test_the_call_that_distributes_rows_is_named_until_they_are(
    caplog: pytest.LogCaptureFixture,
) -> None:
    asks = table({"write.distribution-mode": "hash"})
    with caplog.at_level(logging.WARNING):
        warn_of_unheeded("db.t", asks, "checkpoint-1")
        assert '`distribute(df, "db.t")` of `frazil.spark`' in caplog.messages[0]
        warn_of_unheeded("db.t", asks, "checkpoint-2", is_distributed=True)
        warn_of_unheeded("db.t", table({"write.upsert.enabled": "true"}), "checkpoint-1")
    assert len(caplog.messages) == 2 and "distribute(" not in caplog.messages[1]


def test_an_encrypted_table_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"encryption\.key-id"):
        warn_of_unheeded("db.t", table({"encryption.key-id": "k1"}), "")
