"""Reads the live data files of a manifest that a scan may need, and of each only what it needs.

Most entries look alike, so most of their bytes are compared with the entry before, or stepped over:
`entry_layout.py` says where fields lie. An entry that is not as expected is left to the decoder of
whole entries, which reads it or says what is wrong with it. Column metrics that were not asked for,
and everything of a file whose partition does not match, are never read.
Source: the specification, "Manifests" and "Scan Planning";
docs/reference/iceberg-notes.md 6.4, 6.6, 6.8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from committer.errors import InvalidMetadataError
from committer.iceberg.avro.binary import read_long
from committer.iceberg.avro.container import iter_raw_blocks, read_header
from committer.iceberg.avro.decoder import decode_record
from committer.iceberg.entry.data_file import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntryStatus,
)
from committer.iceberg.entry.drafts import Head, Tail, new_data_file
from committer.iceberg.entry.entry_decoder import entry_from_record
from committer.iceberg.entry.entry_layout import Layout
from committer.iceberg.entry.entry_parts import (
    EntryParts,
    Unexpected,
    entry_parts,
    jump_maps,
    read_format,
    skip_optional,
)
from committer.iceberg.entry.map_layouts import Maps
from committer.iceberg.expressions.expression import Expression
from committer.iceberg.manifest.manifest import manifest_content, manifest_schema, naming
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.iceberg.manifest.manifest_row import RowCheck, refuse_negative
from committer.iceberg.scan.metrics_reader import (
    ColumnMetrics,
    Metrics,
    MetricsPattern,
    Shape,
    metrics_pattern,
    read_metrics,
    search_metrics,
    widened,
)
from committer.iceberg.schema.partition_spec import PartitionSpec

_Value = TypeVar("_Value")
# No part of an entry begins with these: no integer has so many bytes.
_NOTHING = b"\xff" * 16
# A pattern takes as long to compile as dozens of entries take to read pair by pair: most manifests
# have fewer.
_READ_BEFORE_PATTERN = 16
# A shape that differs from entry to entry would cost a pattern for each.
_PATTERNS_MAX = 8
_PATTERNS_TRIED_MAX = 4
_PARTITIONS_MAX = 65_536
_NO_METRICS = Metrics(0)

_NO_LAYOUT = Layout(b"", (), 0, (), ())
_NO_MAPS: Maps = (None, None, None, None, None, None)
_DATA = DataFileContent.DATA


@dataclass(frozen=True, slots=True)
class FileFilter:
    """The filter of a scan on the files of one manifest.

    `residual` answers for a partition tuple of the manifest's spec: what is left to ask of each
    row, None if no row can match. `may_match` is asked with the metrics of the columns `field_ids`;
    None: every file may. `field_ids` None: all metrics are read. `keeps_metrics`: they are handed
    on with the files. `keeps`: which entries are, by their status and ids.
    """

    residual: Callable[[tuple[object, ...]], Expression | None]
    may_match: Callable[[ColumnMetrics], bool] | None = None
    field_ids: frozenset[int] | None = frozenset()
    keeps_metrics: bool = False
    keeps: Callable[[Head], bool] = lambda head: head[0] is not ManifestEntryStatus.DELETED


# The head of its entry, the file, and its residual.
FoundFile = tuple[Head, DataFile, Expression]


def iter_matching_files(
    buf: bytes | memoryview, row: ManifestFile, spec: PartitionSpec, wanted: FileFilter
) -> Iterator[FoundFile]:
    """Yield the files of a data manifest that pass the filter, in order, with all inherited values.

    `row` is the manifest's in the manifest list, `spec` the one that it names.
    Errors: `InvalidMetadataError`, also where the manifest does not hold what its row says, and
    `UnsupportedError` for a codec, naming the manifest.
    """
    with naming(row):
        header = read_header(buf)
        if manifest_content(header) != ManifestContent.DATA:
            raise InvalidMetadataError("a manifest of deletes, expected data")
        check = RowCheck(row, spec, manifest_schema(header))
        reader = _Reader(entry_parts(header.metadata["avro.schema"]), row, spec, wanted, check)
        for block, raw in iter_raw_blocks(buf, header):
            yield from reader.read_block(raw, block.count)
        check.check_counts(reader.files, reader.rows)


# --- Entries -------------------------------------------------------------------------------------


class _Reader:
    """Reads the blocks of one manifest, and remembers of the entries before what is likely again.

    A partition is kept with its residual: for each of them the filter is asked once. `files` and
    `rows` are counted by status, whether the filter keeps them or not.
    """

    def __init__(
        self,
        parts: EntryParts,
        row: ManifestFile,
        spec: PartitionSpec,
        wanted: FileFilter,
        check: RowCheck,
    ) -> None:
        self.files, self.rows = [0, 0, 0], [0, 0, 0]
        self._parts, self._row, self._wanted, self._check = parts, row, wanted, check
        self._spec_id, self._field_ids = spec.spec_id, wanted.field_ids or frozenset()
        self._partition_ids = tuple(field.field_id for field in spec.fields)
        self._partitions: dict[bytes, tuple[tuple[object, ...], Expression | None]] = {}
        self._residuals: dict[str, Expression | None] = {}
        self._patterns: list[MetricsPattern] = []
        self._shape: Shape | None = None
        self._seen = self._learned = 0
        self._next_row_id = row.first_row_id
        self._layout = parts.layout or _NO_LAYOUT
        is_fast = parts.layout is not None and wanted.field_ids is not None
        self.read_block = self._read_fast if is_fast else self._read_whole

    def _read_whole(self, raw: bytes, count: int) -> Iterator[FoundFile]:
        position = 0
        for _ in range(count):
            found, position = self._decode(raw, position)
            if found is not None:
                yield found
        _check_end(position, raw)

    def _read_fast(self, raw: bytes, count: int) -> Iterator[FoundFile]:
        """Read a block's files, all written out:
        a call per field would be half of the time of a scan."""
        before_path, spec_id = self._parts.before_path, self._spec_id
        may_match, has_row_ids = self._wanted.may_match, self._next_row_id is not None
        keeps_metrics = self._wanted.keeps_metrics
        head_bytes = partition_bytes = tail_bytes = _NOTHING
        files, rows = self.files, self.rows
        position = 0
        for _ in range(count):
            start = position
            try:
                if raw.startswith(head_bytes, position):
                    position += len(head_bytes)
                else:
                    head, is_kept, position = self._read_head(raw, position)
                    status, head_bytes = head[0], raw[start:position]
                if not raw.startswith(before_path, position):
                    raise Unexpected
                position += len(before_path)
                number = raw[position]
                position += 1
                if number > 127:
                    number = number & 127 | raw[position] << 7
                    position += 1
                if number & 1 or not number or number > 16383:
                    raise Unexpected
                path_start = position
                path_stop = middle = position + (number >> 1)
                if raw.startswith(partition_bytes, middle):
                    position = middle + len(partition_bytes)
                else:
                    file_format, partition, residual, position = self._read_middle(raw, middle)
                    partition_bytes = raw[middle:position]
                record_count, size, metrics, position = self._read_metrics(raw, position)
                if raw.startswith(tail_bytes, position):
                    position += len(tail_bytes)
                else:
                    tail_start = position
                    tail, position = self._read_tail(raw, position)
                    tail_bytes = raw[tail_start:position]
                if position > len(raw):
                    raise Unexpected
                file_path = raw[path_start:path_stop].decode()
            except (Unexpected, IndexError, UnicodeDecodeError, InvalidMetadataError):
                head_bytes = partition_bytes = tail_bytes = _NOTHING
                found, position = self._decode(raw, start)
                if found is not None:
                    yield found
                continue
            files[status] += 1
            rows[status] += record_count
            own_tail = self._with_row_id(tail, head, record_count) if has_row_ids else tail
            if residual is None or not is_kept or (may_match and not may_match(metrics)):
                continue
            maps = _maps_of(metrics) if keeps_metrics else _NO_MAPS
            file = new_data_file(
                _DATA,
                file_path,
                file_format,
                partition,
                record_count,
                size,
                maps,
                own_tail,
                spec_id,
            )
            yield head, file, residual
        _check_end(position, raw)

    # --- The parts of an entry. Errors: `Unexpected`, IndexError and `InvalidMetadataError` all
    # mean that the decoder is to decide. ---

    def _read_head(self, raw: bytes, position: int) -> tuple[Head, bool, int]:
        """Read status and ids, inherited where they are null, and whether such entries are kept."""
        written, position = self._parts.read_head(raw, position)
        head = _inherited(written, self._row)
        return head, self._wanted.keeps(head), position

    def _read_middle(
        self, raw: bytes, position: int
    ) -> tuple[str, tuple[object, ...], Expression | None, int]:
        """Read format and partition, with the residual of the partition (None: nothing matches)."""
        file_format, position = read_format(raw, position)
        start, known = position, self._partitions
        position = skip_optional(raw, position, self._layout.partition)
        encoded = raw[start:position]
        found = known.get(encoded)
        if found is None:
            record, stop = decode_record(self._parts.partition, encoded, 0)
            if stop != len(encoded):
                raise Unexpected
            partition = tuple(record.get(field_id) for field_id in self._partition_ids)
            self._check.check_partition(partition)
            found = partition, self._wanted.residual(partition)
            if len(known) >= _PARTITIONS_MAX:
                known.clear()
            known[encoded] = found
        return file_format, *found, position

    def _read_metrics(self, raw: bytes, position: int) -> tuple[int, int, ColumnMetrics, int]:
        """Read record count, file size and the wanted metrics."""
        number, more = raw[position], raw[position + 1]
        if number < 128 and not number & 1:
            record_count, position = number >> 1, position + 1
        elif more < 128 and not number & 1:
            record_count, position = (number & 127 | more << 7) >> 1, position + 2
        else:
            record_count, position = read_long(raw, position)
        size, position = read_long(raw, position)
        if record_count < 0 or size < 0:
            raise Unexpected
        if self._layout.counts == 3:
            _, position = read_long(raw, position)
        if self._field_ids:
            metrics, position = self._read_maps(raw, position, record_count)
            return record_count, size, metrics, position
        stop = jump_maps(raw, position) or self._read_maps(raw, position, record_count)[1]
        nothing = Metrics(record_count) if self._wanted.may_match else _NO_METRICS
        return record_count, size, nothing, stop

    def _read_maps(self, raw: bytes, position: int, record_count: int) -> tuple[ColumnMetrics, int]:
        """Read the wanted metrics, and where the six maps end."""
        for at, known in enumerate(self._patterns):
            match = known.pattern.match(raw, position)
            if match is not None:
                if at:
                    self._patterns.insert(0, self._patterns.pop(at))
                return known.metrics(match, record_count), match.end()
        if self._learned == _PATTERNS_MAX:
            return search_metrics(raw, position, self._field_ids, record_count)
        metrics, position, shape = read_metrics(raw, position, self._field_ids, record_count)
        if shape is not None:
            self._learn(shape)
        return metrics, position

    def _learn(self, shape: Shape) -> None:
        """Make a pattern of a shape that none has matched, once the manifest proves to be long."""
        if self._shape is not None:
            shape = widened(shape, self._shape)
        self._shape = shape
        self._seen += 1
        if self._seen <= _READ_BEFORE_PATTERN:
            return
        self._learned += 1
        known = metrics_pattern(shape, self._field_ids)
        self._patterns = [known, *self._patterns[: _PATTERNS_TRIED_MAX - 1]]

    def _read_tail(self, raw: bytes, position: int) -> tuple[Tail, int]:
        tail, position = self._parts.read_tail(raw, position)
        if self._next_row_id is None:
            tail = _with_first_row_id(tail, None)
        return tail, position

    def _with_row_id(self, tail: Tail, head: Head, record_count: int) -> Tail:
        """Return the tail with an inherited row id: docs/reference/iceberg-notes.md 6.8."""
        is_live = head[0] is not ManifestEntryStatus.DELETED
        if tail[4] is not None or not is_live or self._next_row_id is None:
            return tail
        first_row_id, self._next_row_id = self._next_row_id, self._next_row_id + record_count
        return _with_first_row_id(tail, first_row_id)

    def _decode(self, raw: bytes, position: int) -> tuple[FoundFile | None, int]:
        """Decode the entry at a position whole; None if the filter does not keep it."""
        record, position = decode_record(self._parts.entry, raw, position)
        entry = entry_from_record(record, self._partition_ids, self._spec_id)
        file = entry.data_file
        if file.content != DataFileContent.DATA:
            raise InvalidMetadataError(f"{file.file_path}: a delete file in a manifest of data")
        refuse_negative(file)
        self.files[entry.status] += 1
        self.rows[entry.status] += file.record_count
        head = _inherited(
            (entry.status, entry.snapshot_id, entry.sequence_number, entry.file_sequence_number),
            self._row,
        )
        if self._row.first_row_id is None:
            first_row_id = None
        else:
            tail = (None, None, None, None, file.first_row_id, None, None, None)
            first_row_id = self._with_row_id(tail, head, file.record_count)[4]
        residual = self._residual_of(file.partition)
        may_match = self._wanted.may_match
        if residual is None or not self._wanted.keeps(head) or (may_match and not may_match(file)):
            return None, position
        if self._wanted.field_ids is not None:
            field_ids = self._field_ids if self._wanted.keeps_metrics else frozenset()
            file = with_metrics_of(file, field_ids)
        return (head, replace(file, first_row_id=first_row_id), residual), position

    def _residual_of(self, partition: tuple[object, ...]) -> Expression | None:
        # By their text: as keys themselves -0.0 and 0.0 would be one.
        key = repr(partition)
        if key not in self._residuals:
            self._check.check_partition(partition)
            if len(self._residuals) >= _PARTITIONS_MAX:
                self._residuals.clear()
            self._residuals[key] = self._wanted.residual(partition)
        return self._residuals[key]


def _maps_of(metrics: ColumnMetrics) -> Maps:
    return (
        None,
        metrics.value_counts,
        metrics.null_value_counts,
        metrics.nan_value_counts,
        metrics.lower_bounds,
        metrics.upper_bounds,
    )


def _with_first_row_id(tail: Tail, first_row_id: int | None) -> Tail:
    return (*tail[:4], first_row_id, *tail[5:])


def _inherited(head: Head, row: ManifestFile) -> Head:
    """Fill in the ids that an entry inherits: docs/reference/iceberg-notes.md 6.6."""
    status, snapshot_id, sequence_number, file_sequence_number = head
    if snapshot_id is None:
        snapshot_id = row.added_snapshot_id
    if status is ManifestEntryStatus.ADDED or row.sequence_number == 0:
        if sequence_number is None:
            sequence_number = row.sequence_number
        if file_sequence_number is None:
            file_sequence_number = row.sequence_number
    return status, snapshot_id, sequence_number, file_sequence_number


def without_metrics(file: DataFile) -> DataFile:
    """Drop the metrics of a file: they were needed only to find it."""
    return with_metrics_of(file, frozenset())


def with_metrics_of(file: DataFile, field_ids: frozenset[int]) -> DataFile:
    """Return the file with the metrics of some columns only, as the fast way reads it."""

    def some(values: Mapping[int, _Value] | None) -> Mapping[int, _Value] | None:
        if values is None or not field_ids:
            return None
        return {field_id: value for field_id, value in values.items() if field_id in field_ids}

    return replace(
        file,
        column_sizes=None,
        value_counts=some(file.value_counts),
        null_value_counts=some(file.null_value_counts),
        nan_value_counts=some(file.nan_value_counts),
        lower_bounds=some(file.lower_bounds),
        upper_bounds=some(file.upper_bounds),
    )


def _check_end(position: int, raw: bytes) -> None:
    if position != len(raw):
        raise InvalidMetadataError("bytes behind the last entry of a block")
