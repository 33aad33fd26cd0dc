"""Tables of format version 3, which Trino 476 reads and appends to, and cannot delete from."""

from __future__ import annotations

import pytest

from tests.support.servers.trino_client import TrinoError
from tests.trino.shared_catalog import SharedCatalog

pytestmark = [pytest.mark.trino, pytest.mark.timeout(600)]

ROWS = [{"id": number, "carrier": ("AA", "UA")[number % 2]} for number in range(6)]
REFUSED = {
    "DELETE FROM {} WHERE id = 1": "Must use DVs for position deletes in V3",
    "UPDATE {} SET carrier = 'x' WHERE id = 1": "Must use DVs for position deletes in V3",
    "ALTER TABLE {} EXECUTE optimize": "OPTIMIZE is not supported for .* version > 2",
    "ALTER TABLE {} EXECUTE expire_snapshots(retention_threshold => '0s')": (
        "EXPIRE_SNAPSHOTS is not supported for .* version > 2"
    ),
    "ALTER TABLE {} EXECUTE remove_orphan_files(retention_threshold => '7d')": (
        "REMOVE_ORPHAN_FILES is not supported for .* version > 2"
    ),
}


def test_trino_reads_and_appends_beside_us_and_row_ids_stay_without_gaps(
    shared: SharedCatalog,
) -> None:
    table = shared.create(
        "third", "id long, carrier string", "--partition", "carrier", "--format-version", "3"
    )
    shared.publish(table, ROWS[:2], ROWS[2:3])
    everything = f"SELECT id, carrier FROM {table} ORDER BY id"
    assert shared.trino.sql(everything) == [list(row.values()) for row in ROWS[:3]]
    shared.trino.sql(f"INSERT INTO {table} VALUES (3, 'UA'), (4, 'AA')")
    shared.publish(table, ROWS[5:])
    for statement, sentence in REFUSED.items():
        with pytest.raises(TrinoError, match=sentence):
            shared.trino.sql(statement.format(table))
    assert shared.trino.sql(everything) == [list(row.values()) for row in ROWS]

    metadata = shared.load(table).metadata
    assert metadata.format_version == 3
    first = [(one.first_row_id, one.added_rows) for one in metadata.snapshots]
    assert first == [(0, 2), (2, 1), (3, 2), (5, 1)]
    assert metadata.next_row_id == len(ROWS)

    # A delete of whole partitions needs no delete file.
    shared.trino.sql(f"DELETE FROM {table} WHERE carrier = 'UA'")
    shared.publish(table, [{"id": 7, "carrier": "UA"}])
    left = [list(row.values()) for row in ROWS[::2]]
    assert shared.trino.sql(everything) == [*left, [7, "UA"]]
