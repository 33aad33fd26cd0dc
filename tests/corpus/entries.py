"""Fields of data files with values that no addition has, in a manifest and listed as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from committer.ports.pointer_swap import LoadedTable
from committer.reason import Reason
from tests.corpus.bounds import FORM_NAMES, in_form
from tests.corpus.hostile import Hostile, Sent, short
from tests.corpus.tables import FLIGHTS, TYPES
from tests.support.builders.bad_requests import file_of
from tests.support.builders.request_builders import build_file, build_line

_MAPS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts")


def _file(reason: Reason | None, field: str, value: object, form: str, table: str) -> Hostile:
    def send(loaded: LoadedTable, producer: str) -> Sent:
        line = build_line(loaded, producer=producer)
        if table == FLIGHTS:
            file = file_of(loaded, line)
        else:
            file = build_file(loaded.metadata, line.attempt)
        no_bounds = {} if table == FLIGHTS else {"lower_bounds": None, "upper_bounds": None}
        file = replace(file, **(no_bounds | {field: value}))  # type: ignore[arg-type]  # by name
        return Sent.of(in_form(form, line, loaded, file))

    return Hostile(f"{field} = {short(value)} in {table} ({form})", reason, send, table=table)


def _each(reason: Reason | None, **values: Iterable[object]) -> Iterable[Hostile]:
    for field, each in values.items():
        for value in each:
            for form in FORM_NAMES:
                for table in (FLIGHTS, TYPES):
                    yield _file(reason, field, value, form, table)


_OFFSETS = ((-1,), (4, 3), (4, 5, -1), (1_000,), (4, 2**62), (-(2**63), 4), (3, 4, 3))
WRONG: tuple[Hostile, ...] = (
    *_each(Reason.SPLIT_OFFSETS_MALFORMED, split_offsets=_OFFSETS),
    *_each(
        Reason.NEGATIVE_COUNT,
        **{name: ({1: -1}, {1: 5, 2: -(2**63)}, {1: -64, 2: 1}) for name in _MAPS},
    ),
    *_each(
        Reason.DELETE_FIELD_SET,
        equality_ids=((1,), (1, 2), (99,)),
        referenced_data_file=("memory://warehouse/x", "x"),
    ),
    # Only version 3 has these fields in manifests; JSON has them for every table.
    *(
        _file(Reason.DELETE_FIELD_SET, field, value, form, table)
        for field in ("content_offset", "content_size_in_bytes")
        for value in (0, -1, 2**40)
        for form, table in (("files", FLIGHTS), ("files", TYPES), ("manifest", TYPES))
    ),
    *(
        _file(Reason.ROW_ID_SET, "first_row_id", value, "files", table)
        for value in (0, -1, 2**62)
        for table in (FLIGHTS, TYPES)
    ),
)
RIGHT: tuple[Hostile, ...] = (
    *_each(
        None,
        split_offsets=((), (0,), (4, 4), (4, 999)),
        equality_ids=((),),
        column_sizes=({}, {1: 0}, {1: 2**62}, {10**6: 1}),
        sort_order_id=(0, None),
        key_metadata=(b"", b"key"),
        record_count=(0, 2**40),
    ),
)
