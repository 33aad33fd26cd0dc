"""Checks a producer's manifest, entry by entry, without decoding its statistics.

Claims of the manifest are recomputed, never believed: counts, rows, partition tuples and their
summaries. Joining checked manifests is `manifest_splice.py`; whether paths and spec belong to
the table is the caller's question.

Two ways through an entry. The fast one steps over bytes whose order `entry_layout.py` compiled,
and knows the good case only. It leaves an entry that it does not expect to the decoder, which
finds the entry good or says what is wrong with it. So the fast way refuses nothing, and each entry
that it passes has been stepped over field by field.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from committer.errors import InvalidMetadataError, InvalidRequestError
from committer.iceberg.avro.binary import BlockTooLargeError, TruncatedAvroError
from committer.iceberg.avro.codecs import BLOCK_BYTES_MAX
from committer.iceberg.avro.container import Block, Header, iter_raw_blocks, read_header
from committer.iceberg.avro.decoder import Decoder, RepeatedKeyError, decode_record, record_decoder
from committer.iceberg.avro.shapes import RecordShape, Shape, UnionShape, entry_shape, schema_shape
from committer.iceberg.entry.data_file import DataFile, ManifestContent, has_no_order
from committer.iceberg.entry.entry_check import check_addition
from committer.iceberg.entry.entry_decoder import entry_from_record
from committer.iceberg.entry.entry_layout import Layout, layout_of
from committer.iceberg.manifest.manifest import manifest_content, manifest_version
from committer.iceberg.schema.bound_forms import ANY_BOUNDS, BoundForms
from committer.iceberg.splice.addition_maps import AdditionMaps
from committer.iceberg.splice.entry_stepper import Walk, walk_block
from committer.iceberg.splice.work_left import PARTITION_BYTES, TooMuchWorkError, WorkLeft
from committer.iceberg.values.types import StructType
from committer.reason import Reason

# A reader pays for every block: smaller ones are compressed anew, together.
SMALL_BLOCK = 8
_PARTITIONS_KEPT = 4096
_PARTITION_BYTES_KEPT = 256


@dataclass(frozen=True, slots=True)
class WalkedBlock:
    """A block of the manifest. `raw` is kept, inflated, where the block will not be moved as it is:
    fewer than `SMALL_BLOCK` entries, or of version 1 (then `ends` says where each entry ends).
    `null_orders`: the places of the nulls of entries without a sort order; None: not known."""

    count: int
    start: int
    stop: int
    raw: bytes | None
    ends: tuple[int, ...]
    null_orders: tuple[int, ...] | None = ()


@dataclass(frozen=True, slots=True)
class WalkedManifest:
    """A checked manifest of additions. `is_ours`: in Frazil's layout, so blocks can be moved.

    `partitions` has each distinct tuple once, the empty one of an unpartitioned spec too;
    `delete_files` the decoded files of a delete manifest (empty for data). `inflated_bytes`: of all
    blocks together.
    """

    header: Header
    is_ours: bool
    blocks: tuple[WalkedBlock, ...]
    inflated_bytes: int
    added_files_count: int
    added_rows_count: int
    added_size_bytes: int
    paths: list[str]
    partitions: tuple[tuple[object, ...], ...]
    delete_files: tuple[DataFile, ...]


def walk_additions(
    buf: bytes | memoryview,
    partition_type: StructType,
    format_version: int,
    content: ManifestContent,
    *,
    header: Header | None = None,
    forms: BoundForms = ANY_BOUNDS,
    left: WorkLeft | None = None,
) -> WalkedManifest:
    """Check every entry of a manifest against the table's partition type and format version, and
    bounds against the forms of its columns.

    Statistics are jumped by the sizes that their writer gave, once these are proven: a wrong size
    would make the joined manifest unreadable. `header`: the manifest's, if it was read already.
    Errors: `InvalidRequestError` with the reason; `UnsupportedError` for a codec;
    `TooMuchWorkError` where more would be done than is `left`.
    """
    try:
        header = header or read_header(buf)
        return _walk(buf, header, partition_type, format_version, content, forms, left)
    except TruncatedAvroError as error:
        raise InvalidRequestError(Reason.MANIFEST_TRUNCATED, str(error)) from None
    except RepeatedKeyError:
        raise InvalidRequestError(
            Reason.COLUMN_REPEATED,
            "an entry of the manifest has a column twice in one of its maps of metrics",
        ) from None
    except InvalidMetadataError as error:
        raise InvalidRequestError(Reason.MANIFEST_MALFORMED, str(error)) from None


def _walk(
    buf: bytes | memoryview,
    header: Header,
    partition_type: StructType,
    format_version: int,
    content: ManifestContent,
    forms: BoundForms,
    left: WorkLeft | None,
) -> WalkedManifest:
    _check_header(header, format_version, content)
    plan = _plan(header.metadata["avro.schema"], partition_type, format_version, forms)
    checker = _EntryChecker(plan, format_version, content, forms, left)
    # The layout's head is that of data entries; delete files are few, and decoded for the planner.
    layout = plan.layout if content == ManifestContent.DATA else None
    walk = Walk(layout, checker.decode_entry, checker.decode_partition, plan.maps)
    blocks = []
    inflated_bytes = 0
    for block, raw in _inflated(buf, header, left):
        inflated_bytes += len(raw)
        checker.begin_block(raw)
        walk_block(raw, block.count, walk)
        kept = raw if block.count < SMALL_BLOCK or format_version == 1 else None
        ends = tuple(walk.ends) if format_version == 1 else ()
        orders = None if checker.take_order_is_missing() else tuple(walk.null_orders)
        blocks.append(WalkedBlock(block.count, block.start, block.stop, kept, ends, orders))
    added = len(walk.paths) + len(checker.files)
    partitions = checker.distinct_partitions(walk.partitions.values())
    return WalkedManifest(
        header,
        plan.is_ours,
        tuple(blocks),
        inflated_bytes,
        added,
        walk.rows + sum(file.record_count for file in checker.files),
        walk.size_bytes + sum(file.file_size_in_bytes for file in checker.files),
        _decode_paths(walk.paths) + [file.file_path for file in checker.files],
        partitions or ((),) * bool(added),
        tuple(checker.files) if content == ManifestContent.DELETES else (),
    )


def _inflated(
    buf: bytes | memoryview, header: Header, left: WorkLeft | None
) -> Iterator[tuple[Block, bytes]]:
    if left is None:
        yield from iter_raw_blocks(buf, header)
        return
    # Plain Python inflates snappy, byte by byte at worst.
    is_slow = header.codec == "snappy"
    bytes_max = left.decoded_bytes if is_slow else left.inflated_bytes
    try:
        for block, raw in iter_raw_blocks(buf, header, min(bytes_max, BLOCK_BYTES_MAX)):
            left.take_block(len(raw))
            if is_slow:
                left.take_decoded(len(raw))
            yield block, raw
    except BlockTooLargeError:
        raise TooMuchWorkError from None


@dataclass(frozen=True, slots=True)
class _Plan:
    """All that follows from a writer schema and what the table expects. The last two remember what
    entries had: the requests of many writers, of few files each, resemble one another."""

    layout: Layout | None
    is_ours: bool
    entry: Decoder
    partition: Decoder
    field_ids: tuple[int, ...]
    known_partitions: dict[bytes, tuple[object, ...]]
    maps: AdditionMaps


@lru_cache(maxsize=64)
def _plan(
    schema_text: bytes, partition_type: StructType, format_version: int, forms: BoundForms
) -> _Plan:
    written = schema_shape(schema_text)
    ours = entry_shape(format_version, partition_type)
    _check_fields(written, format_version)
    _check_partition_type(written, ours)
    return _Plan(
        layout_of(schema_text),
        written == ours,
        record_decoder(schema_text, is_strict=True),
        _partition_decoder(schema_text),
        tuple(field.field_id for field in partition_type.fields),
        {},
        AdditionMaps(forms),
    )


def _decode_paths(paths: list[bytes]) -> list[str]:
    try:
        return list(map(bytes.decode, paths))
    except UnicodeDecodeError:
        raise InvalidMetadataError("manifest entry: a file path that is not UTF-8") from None


def _check_header(header: Header, format_version: int, content: ManifestContent) -> None:
    if manifest_version(header) != format_version:
        raise InvalidRequestError(
            Reason.FORMAT_VERSION_MISMATCH,
            f"a manifest of format version {manifest_version(header)}, expected {format_version}",
        )
    if manifest_content(header) != content:
        raise InvalidRequestError(
            Reason.MANIFEST_CONTENT_MISMATCH,
            f"a manifest of {manifest_content(header).name}, expected {content.name}",
        )


# Sequence numbers, what a file holds, and the columns of equality deletes.
_SINCE_VERSION_2 = frozenset((3, 4, 134, 135))


def _check_fields(written: RecordShape, format_version: int) -> None:
    """Check that a manifest without a version has no later fields: it is of version 1, as in Java.
    Entries that are not of version 1 are not guessed to be of another. spec: Manifests,
    format-version."""
    if format_version > 1:
        return
    file = written.get(2)
    fields = written.fields + (file.fields if isinstance(file, RecordShape) else ())
    newer = sorted(_SINCE_VERSION_2 & {field_id or 0 for field_id, _ in fields})
    if newer:
        raise InvalidRequestError(
            Reason.FORMAT_VERSION_MISMATCH,
            "a manifest of format version 1, as its header says or leaves open, with the fields"
            f" {newer} of version 2",
        )


# --- Partition types -----------------------------------------------------------------------------

_PROMOTIONS = frozenset((("int", "long"), ("float", "double")))


def _check_partition_type(written: RecordShape, ours: RecordShape) -> None:
    found, expected = _partition_shape(written), _partition_shape(ours)
    if found is None or expected is None:
        raise InvalidMetadataError("manifest: the schema has no partition record")
    if {i for i, _ in found.fields} != {i for i, _ in expected.fields}:
        raise _partition_mismatch("other fields than the partition spec")
    for field_id, shape in expected.fields:
        if field_id is not None and not _can_read(found.get(field_id), shape):
            raise _partition_mismatch(f"another type of partition field {field_id}")


def _partition_shape(entry: RecordShape) -> RecordShape | None:
    file = entry.get(2)
    partition = file.get(102) if isinstance(file, RecordShape) else None
    return partition if isinstance(partition, RecordShape) else None


def _can_read(written: Shape | None, expected: Shape) -> bool:
    """Return whether values of a type are values of the expected one, perhaps after a promotion."""
    found, wanted = _not_null(written), _not_null(expected)
    if found is None or wanted is None:
        return found is None
    if found == wanted or (found, wanted) in _PROMOTIONS:
        return True
    match found.split("<decimal "), wanted.split("<decimal "):
        case [_, narrow], [_, wide]:
            (precision, scale), (precision_max, scale_wanted) = narrow.split(), wide.split()
            return scale == scale_wanted and _number(precision) <= _number(precision_max)
    return False


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else 99


def _not_null(shape: Shape | None) -> str | None:
    """Return the one type of a value beside null; None for the type null."""
    branches = shape.branches if isinstance(shape, UnionShape) else (shape,)
    kinds = [branch for branch in branches if branch != "null"]
    if not kinds:
        return None
    if len(kinds) > 1 or not isinstance(kinds[0], str):
        raise _partition_mismatch("a partition field of a type that no partition has")
    return kinds[0]


def _partition_mismatch(found: str) -> InvalidRequestError:
    return InvalidRequestError(Reason.PARTITION_TYPE_MISMATCH, f"the manifest has {found}")


# --- Entries that the fast way leaves ------------------------------------------------------------


class _EntryChecker:
    """Decodes and checks what has to be decoded: whole entries, and partition tuples."""

    def __init__(
        self,
        plan: _Plan,
        format_version: int,
        content: ManifestContent,
        forms: BoundForms,
        left: WorkLeft | None,
    ) -> None:
        self.files: list[DataFile] = []
        self._left = left
        # Of the block: each of its entries may have to be decoded, if one has.
        self._block_bytes = 0
        self._forms = forms
        self._order_is_missing = False
        self._plan, self._format_version, self._content = plan, format_version, content

    def begin_block(self, raw: bytes) -> None:
        """Note the block that the next entries are of."""
        self._block_bytes = len(raw)

    def decode_entry(self, raw: bytes, position: int) -> int:
        if self._left is not None:
            self._left.take_decoded(self._block_bytes)
            self._block_bytes = 0
        record, position = decode_record(self._plan.entry, raw, position)
        entry = entry_from_record(record, self._plan.field_ids, 0)
        check_addition(entry, self._content, self._format_version, self._forms)
        self.files.append(entry.data_file)
        if has_no_order(entry.data_file):
            self._order_is_missing = True
        return position

    def take_order_is_missing(self) -> bool:
        """Return whether an entry without a sort order was decoded since the last call."""
        found, self._order_is_missing = self._order_is_missing, False
        return found

    def decode_partition(self, encoded: bytes) -> tuple[object, ...]:
        known = self._plan.known_partitions
        partition = known.get(encoded)
        if partition is None:
            if self._left is not None:
                self._left.take_decoded(PARTITION_BYTES)
            partition = self._decode_partition(encoded)
            if len(known) >= _PARTITIONS_KEPT:
                known.clear()
            if len(encoded) <= _PARTITION_BYTES_KEPT:
                known[encoded] = partition
        return partition

    def _decode_partition(self, encoded: bytes) -> tuple[object, ...]:
        record, stop = decode_record(self._plan.partition, encoded, 0)
        if stop != len(encoded):
            raise InvalidMetadataError("manifest entry: a partition tuple of a wrong length")
        return tuple(record.get(field_id) for field_id in self._plan.field_ids)

    def distinct_partitions(
        self, partitions: Iterable[tuple[object, ...]]
    ) -> tuple[tuple[object, ...], ...]:
        # By their text: as keys themselves -0.0 and 0.0 would be one.
        found = {repr(partition): partition for partition in partitions}
        found.update((repr(file.partition), file.partition) for file in self.files)
        return tuple(found.values())


def _partition_decoder(schema_text: bytes) -> Decoder:
    try:
        fields = json.loads(schema_text)["fields"]
        file = next(f["type"] for f in fields if f.get("field-id") == 2)
        partition = next(f["type"] for f in file["fields"] if f.get("field-id") == 102)
        return record_decoder(json.dumps(partition).encode())
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration):
        raise InvalidMetadataError("manifest: the schema has no partition record") from None
