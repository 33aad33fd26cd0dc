"""Rewrites the ids of manifest entries and keeps every other byte: the inner loop of merging, and
of removing files.

An entry that stays in the table becomes EXISTING, with the ids that it inherited written out; its
path, statistics and all the rest are moved as they are. Only entries that may be removed are
decoded. Only for entries in Frazil's layout (equal shape of the writer schema); others are decoded
by `manifest_merge.py`. Source:
docs/reference/iceberg-notes.md 6.6, 6.8, 7.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import lru_cache

from committer.errors import InvalidMetadataError
from committer.iceberg.avro.binary import LONGS, TruncatedAvroError, read_long
from committer.iceberg.avro.decoder import Decoder, decode_record, record_decoder
from committer.iceberg.entry.data_file import ManifestEntryStatus
from committer.iceberg.entry.entry_layout import PAIRS_MAX, plain_maps
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.iceberg.manifest.manifest_row import RowCheck

_METRICS = (108, 109, 110, 137, 125, 128)
_BEFORE_METRICS = (134, 100, 101, 102, 103, 104, 105)
_ROW_ID = 142
_SIX = range(6)
_EXISTING = LONGS[ManifestEntryStatus.EXISTING]
_TAIL_BYTES_MAX = 64


@dataclass(frozen=True, slots=True)
class EntryParts:
    """The order of the bytes of an entry.

    `added`: the head of an ADDED entry that inherits all ids; a head has ids, and before the path
    perhaps the content (`has_content`). `counts`: how many varints lie between the partition and
    the six maps. `tail` ends before the row id, `rest` begins behind it (None without row ids).
    """

    added: bytes
    has_content: bool
    partition: Decoder
    counts: int
    maps: Decoder
    tail: Decoder
    rest: Decoder | None

    @property
    def has_sequence_numbers(self) -> bool:
        return len(self.added) > 2


@lru_cache(maxsize=64)
def entry_parts(schema_text: bytes) -> EntryParts:
    """Return the parts of entries whose writer schema has Frazil's shape."""
    fields = json.loads(schema_text)["fields"]
    file = next(field["type"]["fields"] for field in fields if field["field-id"] == 2)
    ids = [field["field-id"] for field in file]
    behind = [one for one in file if one["field-id"] not in (*_BEFORE_METRICS, *_METRICS)]
    cut = next((place for place, one in enumerate(behind) if one["field-id"] == _ROW_ID), None)
    return EntryParts(
        added=LONGS[ManifestEntryStatus.ADDED] + b"\0" * (len(fields) - 2),
        has_content=134 in ids,
        partition=_decoder(file, (102,)),
        counts=3 if 105 in ids else 2,
        maps=_decoder(file, _METRICS),
        tail=_decoder(behind[:cut]),
        rest=None if cut is None else _decoder(behind[cut + 1 :]),
    )


def _decoder(fields: list[dict[str, object]], ids: Collection[int] | None = None) -> Decoder:
    chosen = [one for one in fields if ids is None or one["field-id"] in ids]
    return record_decoder(json.dumps({"type": "record", "name": "part", "fields": chosen}).encode())


# Of an entry that stays: its partition, encoded, its length, its rows, and its sequence number.
Cut = tuple[bytes, int, int, int | None]
# From the block, the place of an entry in it, and the first row id that it has or inherits: the
# bytes of the entry as a removed one; empty if it stays.
Remove = Callable[[bytes, int, int | None], bytes]


def _keep(_raw: bytes, _position: int, _first_row_id: int | None) -> bytes:
    return b""


@dataclass(slots=True)
class Splice:
    """Walks manifests of one writer schema, and caches the parts that repeat.

    `row`: what the entries of the manifest at hand inherit from. `next_row_id`: what its next live
    entry without a row id has; None where there are none. `partitions` has the tuples by their
    bytes; `tail` and `rest` are those of the entry before. `files` and `rows` of the manifest are
    counted by status, and its partitions are compared with its row by `check`. `remove` is asked
    of live entries whose path, encoded, is among `removable`. `cuts`: notes each entry that stays,
    where its caller takes the blocks apart.
    """

    parts: EntryParts
    partition_field_ids: tuple[int, ...]
    row: ManifestFile
    check: RowCheck
    next_row_id: int | None = None
    files_count: int = 0
    rows_count: int = 0
    min_sequence_number: int | None = None
    partitions: dict[bytes, tuple[object, ...]] = field(default_factory=dict)
    partition: bytes | None = None
    tail: bytes | None = None
    rest: bytes | None = None
    plain: re.Pattern[bytes] | None = None
    is_proved: bool = False
    checked: dict[bytes, tuple[object, ...]] = field(default_factory=dict)
    files: list[int] = field(default_factory=lambda: [0, 0, 0])
    rows: list[int] = field(default_factory=lambda: [0, 0, 0])
    removable: frozenset[bytes] = frozenset()
    remove: Remove = _keep
    cuts: list[Cut] | None = None

    def begin(self, row: ManifestFile, check: RowCheck) -> None:
        """Continue with another manifest."""
        self.row, self.next_row_id, self.is_proved = row, row.first_row_id, False
        self.check, self.checked, self.partition = check, {}, None
        self.files, self.rows = [0, 0, 0], [0, 0, 0]

    def finish(self) -> None:
        """Check the counts, once all blocks of the manifest were spliced.
        Errors: `InvalidMetadataError`."""
        self.check.check_counts(self.files, self.rows)


def splice_block(raw: bytes, count: int, splice: Splice) -> tuple[int, bytes]:
    """Return the live entries of an inflated block as EXISTING ones, and those that are removed now
    as `Splice.remove` returns them: how many, and their bytes.

    The bytes are `raw` itself where nothing had to change.
    Errors: `InvalidMetadataError` for what is no entry, or lacks an id that it may not inherit.
    """
    try:
        return _splice(raw, count, splice)
    except IndexError:
        raise TruncatedAvroError("Avro: the bytes end inside an entry") from None


def _splice(raw: bytes, count: int, splice: Splice) -> tuple[int, bytes]:
    """Splice a block, all written out: the calls that this saves are half of its time."""
    parts, row = splice.parts, splice.row
    added, has_content, rest_decoder = parts.added, parts.has_content, parts.rest
    inherited = _head(row.added_snapshot_id, row.sequence_number, row.sequence_number, parts)
    partition, tail, rest = splice.partition, splice.tail, splice.rest
    pieces: list[bytes] = []
    files_by_status, rows_by_status = splice.files, splice.rows
    removable, remove, cuts = splice.removable, splice.remove, splice.cuts
    kept = removed = rows = position = 0
    is_changed, next_row_id = False, splice.next_row_id
    lowest = splice.min_sequence_number
    for _ in range(count):
        start = position
        # ids
        number: int | None = row.sequence_number
        if raw.startswith(added, position):
            status, is_live, head, position = 1, True, inherited, position + len(added)
        else:
            status, head, number, position = _ids(raw, position, splice)
            is_live = status < 2
        head_stop = position
        # path and format
        path_start = position + has_content
        path_stop = _skip_text(raw, path_start)
        position = _skip_text(raw, path_stop)
        # partition
        if partition is not None and raw.startswith(partition, position):
            position += len(partition)
        else:
            partition_start = position
            position = _partition(raw, position, splice, is_live=is_live)
            partition = raw[partition_start:position] if is_live else None
        # record count, file size, and in version 1 the block size
        rows, position = read_long(raw, position)
        size, position = read_long(raw, position)
        if parts.counts == 3:
            _, position = read_long(raw, position)
        # six maps
        maps_start, position = position, _skip_maps(raw, position, splice)
        if not splice.is_proved and count > 1:
            _prove_sizes(raw, maps_start, position, splice)
        # tail
        if tail is not None and raw.startswith(tail, position):
            position += len(tail)
        else:
            tail_start = position
            _, position = parts.tail(raw, position)
            tail = raw[tail_start:position] if position - tail_start <= _TAIL_BYTES_MAX else None
        # row id, and what is behind it
        row_id, first_row_id = b"", None
        if rest_decoder is not None:
            row_id_start = position
            if raw[position]:
                first_row_id, position = read_long(raw, position + 1)
            else:
                position += 1
                if next_row_id is not None and is_live:
                    first_row_id, row_id = next_row_id, b"\x02" + LONGS[next_row_id]
                    next_row_id += rows
            if rest is not None and raw.startswith(rest, position):
                position += len(rest)
            else:
                rest_start = position
                _, position = rest_decoder(raw, position)
                rest = raw[rest_start:position]
        if rows < 0 or size < 0 or position > len(raw):
            raise InvalidMetadataError("manifest entry: a negative count, or its end is missing")
        files_by_status[status] += 1
        rows_by_status[status] += rows
        if not is_live:
            is_changed = True
            continue
        if removable and raw[path_start:path_stop] in removable:
            gone = remove(raw, start, first_row_id)
            if gone:
                pieces.append(gone)
                removed += 1
                is_changed = True
                continue
        kept += 1
        splice.rows_count += rows
        lowest = number if lowest is None or number is None else min(number, lowest)
        if cuts is not None:
            length = position - start
            if head:
                length += len(head) - (head_stop - start)
            if row_id:
                length += len(row_id) - 1
            cuts.append((partition or b"", length, rows, number))
        if row_id:
            pieces += (head or raw[start:head_stop], raw[head_stop:row_id_start], row_id)
            pieces.append(raw[row_id_start + 1 : position])
            is_changed = True
        elif head:
            pieces += (head, raw[head_stop:position])
            is_changed = True
        else:
            pieces.append(raw[start:position])
    if position != len(raw):
        raise InvalidMetadataError("manifest: bytes behind the last entry of a block")
    splice.next_row_id, splice.min_sequence_number = next_row_id, lowest
    splice.partition, splice.tail, splice.rest = partition, tail, rest
    splice.files_count += kept
    return kept + removed, b"".join(pieces) if is_changed else raw


def _head(
    snapshot_id: int,
    sequence_number: int | None,
    file_sequence_number: int | None,
    parts: EntryParts,
) -> bytes:
    head = _EXISTING + b"\x02" + LONGS[snapshot_id]
    if not parts.has_sequence_numbers:
        return head
    if sequence_number is None or file_sequence_number is None:
        raise InvalidMetadataError("manifest entry: no sequence number, and not to be inherited")
    return b"%b\x02%b\x02%b" % (head, LONGS[sequence_number], LONGS[file_sequence_number])


def _ids(raw: bytes, position: int, splice: Splice) -> tuple[int, bytes, int | None, int]:
    """Read a head: the status, the head from now on (empty: as it stands), the sequence number,
    and where the head ends."""
    parts, row = splice.parts, splice.row
    status, position = read_long(raw, position)
    if status not in (0, 1, 2):
        raise InvalidMetadataError("manifest entry: a status that is not 0, 1 or 2")
    snapshot_id, position = _optional_long(raw, position)
    number = file_number = None
    if parts.has_sequence_numbers:
        number, position = _optional_long(raw, position)
        file_number, position = _optional_long(raw, position)
    if status == ManifestEntryStatus.DELETED:
        return status, b"", None, position
    is_explicit = None not in (
        (snapshot_id, number, file_number) if parts.has_sequence_numbers else (snapshot_id,)
    )
    if is_explicit and status == ManifestEntryStatus.EXISTING:
        return status, b"", number, position
    if parts.has_sequence_numbers and (
        status == ManifestEntryStatus.ADDED or row.sequence_number == 0
    ):
        number = row.sequence_number if number is None else number
        file_number = row.sequence_number if file_number is None else file_number
    snapshot_id = row.added_snapshot_id if snapshot_id is None else snapshot_id
    return status, _head(snapshot_id, number, file_number, parts), number, position


def _optional_long(raw: bytes, position: int) -> tuple[int | None, int]:
    if not raw[position]:
        return None, position + 1
    return read_long(raw, position + 1)


def _skip_text(raw: bytes, position: int) -> int:
    size, position = read_long(raw, position)
    if size < 0:
        raise InvalidMetadataError("Avro: a negative length")
    return position + size


def _partition(raw: bytes, position: int, splice: Splice, *, is_live: bool) -> int:
    # Not as a record of its own: the tuple of an unpartitioned spec takes no bytes.
    record, stop = splice.parts.partition(raw, position)
    encoded = raw[position:stop]
    partition = splice.checked.get(encoded)
    if partition is None:
        values = record.get(102) if isinstance(record, dict) else None
        if not isinstance(values, dict):
            raise InvalidMetadataError("manifest entry: field 102 is missing or of a wrong type")
        partition = tuple(values.get(one) for one in splice.partition_field_ids)
        splice.check.check_partition(partition)
        splice.checked[encoded] = partition
    if is_live:
        splice.partitions[encoded] = partition
    return stop


def _skip_maps(raw: bytes, start: int, splice: Splice) -> int:
    """Step over six maps: by their sizes, or all at once by the pattern that matched before."""
    position = start
    for _ in _SIX:
        if not raw[position]:
            position += 1
            continue
        number = raw[position + 1]
        position += 2
        if number == 0:
            continue
        # A negative count is odd, and the size of the pairs follows.
        if not number & 1:
            return _skip_plain_maps(raw, start, splice)
        if number > 127:
            _, position = read_long(raw, position - 1)
        number = raw[position]
        if number < 128:
            position += 1 + (number >> 1)
        elif raw[position + 1] < 128:
            position += 2 + ((number & 127 | raw[position + 1] << 7) >> 1)
        else:
            size, position = read_long(raw, position)
            position += size
        # A further block of the same map.
        if raw[position]:
            return _decode_maps(raw, start, splice)
        position += 1
    return position


def _prove_sizes(raw: bytes, start: int, stop: int, splice: Splice) -> None:
    """Check one block's sizes per manifest, so that a writer that counts wrong is found; a block of
    one entry proves its sizes by its end."""
    if decode_record(splice.parts.maps, raw, start)[1] != stop:
        raise InvalidMetadataError("manifest entry: a map of another size than it says")
    splice.is_proved = True


def _skip_plain_maps(raw: bytes, start: int, splice: Splice) -> int:
    match = splice.plain.match(raw, start) if splice.plain is not None else None
    return _decode_maps(raw, start, splice) if match is None else match.end()


def _decode_maps(raw: bytes, start: int, splice: Splice) -> int:
    """Step over the maps pair by pair, and learn how many pairs each has:
    files of one table have the same columns."""
    record, stop = decode_record(splice.parts.maps, raw, start)
    maps = (record[field_id] for field_id in _METRICS)
    counts = tuple(len(one) if isinstance(one, dict) else None for one in maps)
    if all(count is None or count <= PAIRS_MAX for count in counts):
        splice.plain = plain_maps(counts)
    return stop
