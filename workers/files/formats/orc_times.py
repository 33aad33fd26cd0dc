"""Times that ORC does not hold: those before 1970 with a fraction of a second.

ORC stores seconds and nanoseconds apart. Java takes a second off what it reads where the seconds
are negative and the nanoseconds a millisecond or more; its writer adds it before. pyarrow cuts a
time toward zero and stores both parts negative, of which Java makes a second less. What Java
writes is no way out: of the last second before 1970 it reads what is a second more.
Source: docs/reference/iceberg-notes.md 11.2.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from committer.errors import PublishError

_UNITS = {"us": 1_000_000, "ns": 1_000_000_000}


def check_times(rows: pa.Table) -> None:
    """Refuse rows with such times. Errors: `PublishError` names the column and the first one."""
    for field, column in zip(rows.schema, rows.columns, strict=True):
        for chunk in column.chunks:
            for path, times in _times(field.name, chunk):
                _check(path, times)


def _times(path: str, array: pa.Array) -> Iterator[tuple[str, pa.Array]]:
    """Yield the times inside of an array that are not inside of nulls."""
    kind = array.type
    if pa.types.is_timestamp(kind):
        yield path, array
    elif pa.types.is_struct(kind):
        for field, child in zip(kind, array.flatten(), strict=True):
            yield from _times(f"{path}.{field.name}", child)
    elif pa.types.is_list(kind):
        yield from _times(f"{path}.element", array.flatten())
    elif pa.types.is_map(kind):
        whole = array.drop_null()
        first, last = whole.offsets[0].as_py(), whole.offsets[-1].as_py()
        for name, child in (("key", whole.keys), ("value", whole.items)):
            yield from _times(f"{path}.{name}", child.slice(first, last - first))


def _check(path: str, times: pa.Array) -> None:
    numbers = times.cast(pa.int64())
    lowest = pc.min(numbers).as_py()
    if lowest is None or lowest >= 0:
        return
    old = times.filter(pc.less(numbers, 0))
    second = pa.scalar(_UNITS[times.type.unit], pa.int64())
    counts = old.cast(pa.int64())
    whole = pc.multiply(pc.divide(counts, second), second)
    found = old.filter(pc.not_equal(counts, whole))
    if len(found):
        text = found[:1].cast(pa.string())[0].as_py()
        raise PublishError(
            f"column `{path}`: {text}: ORC files hold no time before 1970 with a fraction of a"
            " second that all readers read alike: write Parquet or Avro (`write.format.default`,"
            " option `write-format`), or cut such times to seconds"
        )
