from __future__ import annotations

from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from committer.errors import PublishError
from committer.iceberg.values.types import DoubleType, LongType, UUIDType
from tests.support.workers.tables import optional, required, schema
from workers.changes.tasks.row_kinds import IS_DELETED
from workers.changes.tasks.winning_batches import WinningBatches
from workers.changes.upserts.winners import upsert_columns
from workers.spark.spark_batches import spark_arrow_schema
from workers.upserts.upsert import DeleteMark, Upsert

TABLE = schema(
    required(1, "code", UUIDType()),
    required(2, "region", LongType()),
    optional(3, "price", DoubleType()),
)
FRAME = pa.schema(
    [("Code", pa.string()), ("region", pa.int32()), ("op", pa.string()), ("at", pa.int64())]
)
UPSERT = Upsert(("Code",), DeleteMark("op", ("d",)), "at")
ONE, TWO = str(UUID(int=1)), str(UUID(int=2))


def picked(*rows: tuple[Any, ...]) -> list[dict[str, Any]]:
    batches = WinningBatches(UPSERT, TABLE, spark_arrow_schema(upsert_columns(TABLE)))
    given = [pa.record_batch([[value] for value in row], schema=FRAME) for row in rows]
    return [row for batch in batches.pick(iter(given)) for row in batch.to_pylist()]


def test_a_row_that_counts_comes_as_spark_has_the_tables_columns() -> None:
    found = picked((ONE, 1, "c", 1), (ONE.upper(), 2, None, 3), (ONE, 3, "u", 2))
    assert found == [{"code": ONE, "region": 2, "price": None, IS_DELETED: False}]


def test_a_row_that_deletes_has_its_key_only() -> None:
    found = picked((ONE, 1, "c", 1), (TWO, None, "d", 2), (ONE, 9, "d", 3), (TWO, 5, "c", 1))
    assert sorted(found, key=str) == [
        {"code": key, "region": None, "price": None, IS_DELETED: True} for key in (ONE, TWO)
    ]


def test_nothing_comes_of_no_rows_and_of_rows_that_do_not_fit() -> None:
    assert picked() == []
    with pytest.raises(PublishError, match="column region is required"):
        picked((ONE, None, "c", 1))
    with pytest.raises(PublishError, match="several different rows"):
        picked((ONE, 1, "c", 1), (ONE, 2, "c", 1))
