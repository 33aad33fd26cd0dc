"""The input of the second act: what becomes known of each flight, as changes by the flight's id.

A flight is scheduled (an insert), departs and arrives (two updates), or it is canceled (a delete).
Most flights come by the streams, each with keys of its own. The last fifth comes by a batch:
some are loaded before, and corrections of all of them are merged in.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from committer.demo.writers.flight_replay import stream_folder, write_batch
from committer.demo.writers.flights import COLUMNS

KEY = "id"
SEQUENCE = "seq"
DELETES = "op = 'd'"
TABLE_COLUMNS = {KEY: "int", **COLUMNS}
CHANGE_COLUMNS = {**TABLE_COLUMNS, "op": "string", SEQUENCE: "int"}

_AT_DEPARTURE = ("dep_time", "dep_delay", "tailnum")
_AT_ARRIVAL = ("arr_time", "arr_delay", "air_time")
_STREAMED_PART = 5  # all but one in so many flights
_LOADED_PART = 3  # all but one in so many flights of the batch


@dataclass(frozen=True, slots=True)
class ChangeInput:
    """Changes as they are handed out. `streams`: the micro-batches of each; `loaded`: appended
    before `corrections` are merged; `first_correction`: all ids from here on are the batch's.
    """

    streams: list[list[pa.Table]]
    loaded: pa.Table
    corrections: pa.Table
    first_correction: int

    @property
    def micro_batches(self) -> int:
        return sum(map(len, self.streams))

    @property
    def streamed_rows(self) -> int:
        return sum(batch.num_rows for batches in self.streams for batch in batches)

    @property
    def all_changes(self) -> pa.Table:
        batches = [batch for batches in self.streams for batch in batches]
        return pa.concat_tables([*batches, self.loaded, self.corrections])


def plan_changes(flights: pa.Table, streams: int, batches: int) -> ChangeInput:
    """Make the changes of some flights, whose ids are their places in the table."""
    ids = pa.array(range(flights.num_rows), pa.int32())
    named = flights.add_column(0, KEY, ids)
    first = flights.num_rows - flights.num_rows // _STREAMED_PART
    batch = named.slice(first)
    known = pa.array([row % _LOADED_PART != 0 for row in range(batch.num_rows)], pa.bool_())
    return ChangeInput(
        [_stream(named.slice(0, first), stream, streams, batches) for stream in range(streams)],
        _scheduled(batch.filter(known)),
        _settled(batch, 2),
        first,
    )


def write_changes(changes: ChangeInput, folder: Path) -> None:
    """Write a folder of files for each stream, and `loaded.parquet`, `corrections.parquet`."""
    for stream, batches in enumerate(changes.streams):
        into = stream_folder(folder, stream)
        into.mkdir(parents=True)
        for number, rows in enumerate(batches):
            write_batch(rows, into, number)
    pq.write_table(changes.loaded, folder / "loaded.parquet")
    pq.write_table(changes.corrections, folder / "corrections.parquet")


def latest_rows(changes: pa.Table) -> pa.Table:
    """Return the rows that a table has after all changes, by id: of each key the change with the
    highest sequence counts. Nothing of Frazil takes part in it.
    """
    sequences = changes[SEQUENCE].to_pylist()
    last: dict[int, int] = {}
    for row, key in enumerate(changes[KEY].to_pylist()):
        if key not in last or sequences[last[key]] < sequences[row]:
            last[key] = row
    operations = changes["op"].to_pylist()
    kept = [last[key] for key in sorted(last) if operations[last[key]] != "d"]
    return changes.take(pa.array(kept, pa.int64())).select(list(TABLE_COLUMNS))


# --- The changes of one stream -------------------------------------------------------------------


def _stream(flights: pa.Table, stream: int, streams: int, batches: int) -> list[pa.Table]:
    """Return the micro-batches of a stream, which has every so many flights. The changes of a
    flight lie in one micro-batch or in several, in order; within each they are shuffled.
    """
    mine = flights.take(pa.array(range(stream, flights.num_rows, streams), pa.int64()))
    steps = [_scheduled(mine), _departed(mine), _settled(mine, 3)]
    changes = pa.concat_tables([step.append_column("at", _times(step, flights)) for step in steps])
    changes = changes.sort_by([("at", "ascending"), (SEQUENCE, "ascending")]).drop_columns(["at"])
    rows, pieces = changes.num_rows, min(changes.num_rows, batches)
    cuts = [rows * piece // pieces for piece in range(pieces + 1)] if pieces else []
    return [
        changes.slice(start, stop - start).take(_shuffled(stop - start))
        for start, stop in pairwise(cuts)
    ]


def _times(step: pa.Table, flights: pa.Table) -> pa.Array:
    """Return when each change happens: in the order of the flights, later steps later, by very
    little for some flights and by a part of the whole time for others."""
    keys, whole = step[KEY].to_pylist(), flights.num_rows
    sequences = step[SEQUENCE].to_pylist()
    return pa.array(
        [
            key + sequence * (1 + key % 7) * whole // 40
            for key, sequence in zip(keys, sequences, strict=True)
        ],
        pa.int64(),
    )


def _shuffled(rows: int) -> pa.Array:
    """Return all places in an order of their own."""
    return pa.array(sorted(range(rows), key=lambda place: place * 7919 % 1009), pa.int64())


# --- What is known of flights at a step ----------------------------------------------------------


def _scheduled(flights: pa.Table) -> pa.Table:
    return _change(_unknown(flights, (*_AT_DEPARTURE, *_AT_ARRIVAL)), "i", 1)


def _departed(flights: pa.Table) -> pa.Table:
    flown = flights.filter(pc.is_valid(flights["dep_time"]))
    return _change(_unknown(flown, _AT_ARRIVAL), "u", 2)


def _settled(flights: pa.Table, sequence: int) -> pa.Table:
    """Return the last change of each flight: the whole row, or a delete if it was canceled."""
    has_flown = pc.is_valid(flights["dep_time"])
    flown = _change(flights.filter(has_flown), "u", sequence)
    canceled = _change(flights.filter(pc.invert(has_flown)), "d", sequence)
    return pa.concat_tables([flown, canceled])


def _change(flights: pa.Table, operation: str, sequence: int) -> pa.Table:
    rows = flights.num_rows
    operations = pa.array([operation] * rows, pa.string())
    sequences = pa.array([sequence] * rows, pa.int32())
    return flights.append_column("op", operations).append_column(SEQUENCE, sequences)


def _unknown(flights: pa.Table, names: tuple[str, ...]) -> pa.Table:
    for name in names:
        place = flights.schema.get_field_index(name)
        field = flights.schema.field(place)
        flights = flights.set_column(place, field, pa.nulls(flights.num_rows, field.type))
    return flights
