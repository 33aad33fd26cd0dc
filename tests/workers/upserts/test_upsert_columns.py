from __future__ import annotations

import pyarrow as pa
import pytest

from committer.errors import PublishError
from committer.iceberg.values.types import DoubleType, LongType, StringType
from tests.support.workers.tables import optional, required, schema, struct
from workers.upserts.upsert import DeleteMark, Upsert
from workers.upserts.upsert_columns import UpsertColumns, bind_upsert

TABLE = schema(
    required(1, "Id", LongType()),
    optional(2, "name", StringType()),
    optional(3, "score", DoubleType()),
    optional(4, "point", struct(optional(5, "x", LongType()))),
)
FRAME = pa.schema(
    [
        ("op", pa.string()),
        ("name", pa.string()),
        ("ID", pa.int32()),
        ("gone", pa.bool_()),
        ("at", pa.timestamp("us")),
        ("score", pa.float64()),
    ]
)
PLAIN = pa.schema([("id", pa.int64()), ("name", pa.string()), ("score", pa.float64())])


def bound(upsert: Upsert, frame: pa.Schema = FRAME) -> UpsertColumns:
    wanted = {upsert.sequence, upsert.delete and upsert.delete.column}
    unused = {"op", "gone", "at"} - wanted
    return bind_upsert(upsert, pa.schema([f for f in frame if f.name not in unused]), TABLE)


def test_columns_that_say_what_a_row_does_stay_out_of_the_table() -> None:
    upsert = Upsert(("id",), DeleteMark("op", ("d",)), "at")
    columns = bound(upsert)
    assert columns.rows.schema.names == ["Id", "name", "score", "point"]
    assert columns.keys.schema.names == ["Id"]
    assert columns.key_ids == (1,)


def test_a_column_of_the_table_that_orders_rows_is_written_too() -> None:
    columns = bind_upsert(Upsert(("id",), None, "NAME"), PLAIN, TABLE)
    assert columns.rows.schema.names == ["Id", "name", "score", "point"]
    batch = pa.record_batch([[7], ["x"], [0.5]], schema=PLAIN)
    assert columns.rows_of(batch).column("name").to_pylist() == ["x"]
    assert columns.keys_of(batch).schema == pa.schema([columns.rows.schema.field("Id")])


def test_keys_have_the_order_of_the_table() -> None:
    columns = bind_upsert(Upsert(("name", "id")), PLAIN, TABLE)
    batch = pa.record_batch([[7], ["x"], [0.5]], schema=PLAIN)
    assert columns.keys_of(batch).to_pylist() == [{"Id": 7, "name": "x"}]
    assert columns.key_ids == (1, 2)


@pytest.mark.parametrize(
    ("mark", "values", "deleted"),
    [
        (DeleteMark("mark"), [True, False, None], [True, False, False]),
        (DeleteMark("mark", ("d", "D")), ["d", "c", None, "D"], [True, False, False, True]),
        (DeleteMark("mark", (3,)), [1, 3, None], [False, True, False]),
    ],
)
def test_a_row_deletes_its_key_where_the_mark_says_so(
    mark: DeleteMark, values: list[object], deleted: list[bool]
) -> None:
    batch = pa.record_batch([pa.array(range(len(values))), pa.array(values)], ["id", "mark"])
    columns = bind_upsert(Upsert(("id",), mark), batch.schema, TABLE)
    assert columns.is_deleted(batch).to_pylist() == deleted


def test_no_mark_deletes_nothing() -> None:
    batch = pa.record_batch([[1, 2]], ["id"])
    columns = bind_upsert(Upsert(("id",)), batch.schema, TABLE)
    assert columns.is_deleted(batch).to_pylist() == [False, False]


@pytest.mark.parametrize(
    ("upsert", "problem"),
    [
        (Upsert(("absent",)), "`upsert-keys`: expected one column `absent` of the DataFrame"),
        (Upsert(("gone",), DeleteMark("gone")), "the table has no column `gone`"),
        (Upsert(("score",)), r"`score` is of type double, expected a type whose values are equal"),
        (Upsert(("id", "ID")), "names a column twice"),
        (Upsert(("id",), DeleteMark("absent")), "`upsert-delete-column`: expected one column"),
        (Upsert(("id",), DeleteMark("op")), "`op` is of type string, expected boolean, or"),
        (Upsert(("id",), DeleteMark("op", (1,))), "expected values of type string, as column `op`"),
        (Upsert(("id",), None, "absent"), "`upsert-sequence-column`: expected one column"),
        (Upsert(("id",), None, "score"), "`score` is of type double, expected an integer"),
    ],
)
def test_columns_that_do_not_fit_are_refused(upsert: Upsert, problem: str) -> None:
    with pytest.raises(PublishError, match=problem):
        bound(upsert)


def test_a_struct_is_no_key() -> None:
    point = pa.field("point", pa.struct([("x", pa.int64())]))
    with pytest.raises(PublishError, match="no float, double, struct"):
        bind_upsert(Upsert(("point",)), pa.schema([PLAIN.field("id"), point]), TABLE)


def test_a_null_in_a_key_or_in_what_orders_rows_is_refused() -> None:
    frame = pa.schema([("id", pa.int64()), ("name", pa.string()), ("at", pa.int64())])
    columns = bind_upsert(Upsert(("id", "name"), None, "at"), frame, TABLE)
    batch = pa.record_batch([[1, 2], ["x", None], [1, None]], schema=frame)
    with pytest.raises(PublishError, match="key column `name` holds a null"):
        columns.keys_of(batch)
    with pytest.raises(PublishError, match="sequence column `at` holds a null"):
        columns.sequence_of(batch)
