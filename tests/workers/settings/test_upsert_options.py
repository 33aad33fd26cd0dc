from __future__ import annotations

import pytest
from pyspark.sql.types import LongType, StructType

from committer.errors import SettingsError
from workers.settings.options import parse_options
from workers.settings.upsert_options import upsert_options
from workers.sink.datasource import make_batch_writer, make_stream_writer
from workers.upserts.upsert import Upsert

POSITIONS = {"upsert-keys": "id", "upsert-deletes": "Positions"}


def test_old_rows_are_deleted_by_their_keys_unless_positions_are_asked_for() -> None:
    assert upsert_options({"upsert-keys": "id"}) == Upsert(("id",))
    found = upsert_options({**POSITIONS, "upsert-partitions": "3"})
    assert found == Upsert(("id",), deletes="positions", partitions=3)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"upsert-keys": "id", "upsert-deletes": "vectors"}, "expected `equality` or `positions`"),
        ({"upsert-keys": "id", "upsert-partitions": "2"}, "with `upsert-deletes` `positions`"),
        ({**POSITIONS, "upsert-partitions": "0"}, "expected 1 or more"),
        ({**POSITIONS, "wait": "durable"}, "option `wait`: expected `committed`"),
        ({**POSITIONS, "on_conflict": "fail"}, "`on_conflict`: found with .* looked up again"),
        ({**POSITIONS, "mergeSchema": "true"}, "only an append brings columns along"),
        ({"upsert-partitions": "2"}, "expected `upsert-keys` with it"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, str], problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        parse_options({"table": "db.t", **options}, streaming=False)


def test_a_data_source_refuses_to_look_keys_up_and_says_what_does() -> None:
    rows, options = StructType().add("id", LongType()), {"table": "db.t", **POSITIONS}
    for make in (make_batch_writer, make_stream_writer):
        with pytest.raises(SettingsError, match=r"upsert_stream\(rows, keys, deletes="):
            make(options, rows, overwrite=False)
