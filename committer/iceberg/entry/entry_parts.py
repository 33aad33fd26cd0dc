"""Locates the parts of a manifest entry by its writer's schema, and steps over them.

An entry that is not as expected is left to the decoder of whole entries: nothing is refused here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import cast

import orjson

from committer.errors import InvalidMetadataError
from committer.iceberg.avro.binary import read_bytes, read_long
from committer.iceberg.avro.decoder import Decoder, decode_record, record_decoder
from committer.iceberg.entry.data_file import ManifestEntryStatus
from committer.iceberg.entry.drafts import Head, Tail
from committer.iceberg.entry.entry_layout import Layout, Skip, layout_of

_FORMATS = ((b"\x0ePARQUET", "PARQUET"), (b"\x06ORC", "ORC"), (b"\x08AVRO", "AVRO"))
# In the order of `Tail`.
_TAIL_TYPES: tuple[tuple[int, type], ...] = (
    (131, bytes),
    (132, tuple),
    (135, tuple),
    (140, int),
    (142, int),
    (143, str),
    (144, int),
    (145, int),
)

# As varints.
_STATUSES = {2 * status: status for status in ManifestEntryStatus}


class Unexpected(Exception):
    """The bytes are not what the fast way knows. The decoder of whole entries decides."""


@dataclass(frozen=True, slots=True)
class EntryParts:
    """Decoders of a whole entry and of two parts of it, and where these lie.

    `layout` None: only the decoder of whole entries can read this writer's. `has_numbers`: entries
    have both sequence numbers. `before_path`: the bytes of a data file before its path.
    """

    layout: Layout | None
    entry: Decoder
    partition: Decoder
    tail: Decoder
    has_numbers: bool
    before_path: bytes

    def read_head(self, raw: bytes, position: int) -> tuple[Head, int]:
        """Read status and ids as they are written, and where they end.

        Errors: `Unexpected`; `InvalidMetadataError`, IndexError.
        """
        status = _STATUSES.get(raw[position])
        position += 1
        numbers: list[int | None] = [None, None, None]
        for place in range(3 if self.has_numbers else 1):
            branch = raw[position]
            position += 1
            if branch == 2:
                numbers[place], position = read_long(raw, position)
            elif branch:
                raise Unexpected
        if status is None:
            raise Unexpected
        return (status, numbers[0], numbers[1], numbers[2]), position

    def read_tail(self, raw: bytes, position: int) -> tuple[Tail, int]:
        """Return the fields behind the metrics, and where they end.

        Errors: `Unexpected`; `InvalidMetadataError`, IndexError.
        """
        record, position = decode_record(self.tail, raw, position)
        for field_id, kind in _TAIL_TYPES:
            value = record.get(field_id)
            if value is not None and type(value) is not kind:
                raise Unexpected
        return cast("Tail", tuple(record.get(field_id) for field_id, _ in _TAIL_TYPES)), position


@lru_cache(maxsize=64)
def entry_parts(schema_text: bytes) -> EntryParts:
    """Return the parts of a writer's entries.
    Errors: `InvalidMetadataError` for no schema of records."""
    layout, entry = layout_of(schema_text), record_decoder(schema_text)
    whole = EntryParts(None, entry, entry, entry, False, b"")
    if layout is None:
        return whole
    try:
        fields = orjson.loads(schema_text)["fields"]
        file = next(field["type"]["fields"] for field in fields if field["field-id"] == 2)
        partition = next(field["type"] for field in file if field["field-id"] == 102)
        tail = file[len(file) - len(layout.tail) :]
        partition_decoder = record_decoder(orjson.dumps(partition))
        tail_decoder = record_decoder(
            orjson.dumps({"type": "record", "name": "tail", "fields": tail})
        )
    except (KeyError, TypeError, StopIteration, ValueError, InvalidMetadataError):
        # The same shape, written in another way: by names of types that were said before.
        return whole
    has_numbers = len(fields) == 5
    return EntryParts(
        layout,
        entry,
        partition_decoder,
        tail_decoder,
        has_numbers,
        layout.head[4 if has_numbers else 2 :],
    )


# --- Steps ---------------------------------------------------------------------------------------


def read_format(raw: bytes, position: int) -> tuple[str, int]:
    """Read the format of a data file, and where it ends."""
    for encoded, file_format in _FORMATS:
        if raw.startswith(encoded, position):
            return file_format, position + len(encoded)
    raise Unexpected


def jump_maps(raw: bytes, position: int) -> int:
    """Return where six maps end by the sizes that they say; 0 if one does not say its size."""
    for _ in range(6):
        branch, number = raw[position], raw[position + 1]
        if branch != 2:
            if branch:
                raise Unexpected
            position += 1
            continue
        position += 2
        if number == 0:
            continue
        if not number & 1:
            return 0
        if number > 127:
            if raw[position] > 127:
                return 0
            position += 1
        length = raw[position]
        if length < 128:
            position += 1
        else:
            number = raw[position + 1]
            length = length & 127 | number << 7
            position += 2
            if number > 127:
                return 0
        position += length >> 1
        if length & 1 or raw[position]:
            raise Unexpected
        position += 1
    return position


def skip_optional(raw: bytes, position: int, skips: tuple[int, ...]) -> int:
    """Step over values that are each null or not, such as those of a partition tuple."""
    for skip in skips:
        branch = raw[position]
        position += 1
        if not branch:
            continue
        if branch != 2:
            raise Unexpected
        if skip > 0:
            position += skip
        elif skip == Skip.VARINT:
            _, position = read_long(raw, position)
        elif skip == Skip.PREFIXED:
            _, position = read_bytes(raw, position)
        else:
            position = step_varints(raw, position, [])
    return position


def step_varints(raw: bytes, position: int, found: list[int]) -> int:
    """Step over an array of integers, item by item: they are few, and tails repeat."""
    stop = None
    while True:
        if stop is not None and position != stop:
            raise Unexpected
        count, position = read_long(raw, position)
        if count == 0:
            return position
        stop = None
        if count < 0:
            size, position = read_long(raw, position)
            stop = position + size
        # Each takes a byte at least, so running out of bytes ends this.
        for _ in range(abs(count)):
            number, position = read_long(raw, position)
            found.append(number)
