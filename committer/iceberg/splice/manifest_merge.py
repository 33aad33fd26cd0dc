"""Merges committed manifests to one: live entries become EXISTING, everything else is moved.

Unlike a producer's manifest (`manifest_splice.py`), entries here have a history: what they inherit
from their row of the manifest list is written into them, because the new row says something else.
DELETED entries are left out, but for those of files that are removed now (`Removal`).
Source: docs/reference/iceberg-notes.md 6.6, 6.8, 7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from committer.errors import InvalidMetadataError, InvariantError, UnsupportedError
from committer.iceberg.avro.binary import encode_bytes
from committer.iceberg.avro.codecs import DEFLATE_LEVEL, DEFLATE_LEVEL_FAST
from committer.iceberg.avro.container import Header, encode_container, iter_raw_blocks, read_header
from committer.iceberg.avro.decoder import decode_record, record_decoder
from committer.iceberg.avro.shapes import entry_shape, schema_shape
from committer.iceberg.entry.data_file import ManifestContent, ManifestEntry, ManifestEntryStatus
from committer.iceberg.entry.entry_decoder import entry_from_record
from committer.iceberg.entry.entry_encoder import entry_encoder
from committer.iceberg.entry.partition_encoder import partition_encoder
from committer.iceberg.manifest.block_pool import BlockPool, EncodedBlock
from committer.iceberg.manifest.manifest import inherit, manifest_content, manifest_schema, naming
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.iceberg.manifest.manifest_reader import read_entries
from committer.iceberg.manifest.manifest_row import RowCheck, checked_entries
from committer.iceberg.manifest.manifest_writer import (
    EncodedManifest,
    ManifestContext,
    manifest_header,
)
from committer.iceberg.manifest.partition_summary import summarize_partitions
from committer.iceberg.schema.partition_spec import partition_type
from committer.iceberg.splice.entry_splice import Cut, Remove, Splice, entry_parts, splice_block
from committer.iceberg.splice.manifest_walk import SMALL_BLOCK
from committer.iceberg.values.types import UnknownType

# About a millisecond of work. An entry that has to be decoded costs as much as eight moved ones.
_SLICE = 64
_DECODED = 8


@dataclass(frozen=True, slots=True)
class Removal:
    """The files that snapshot `snapshot_id` removes: those entries, of files with these paths, that
    it `takes`; they are asked of with all that they inherit.
    """

    snapshot_id: int
    paths: frozenset[str]
    takes: Callable[[ManifestEntry], bool] = lambda _: True


class ManifestMerge:
    """Gathers manifests of one partition spec and content; mutable, for one merged manifest.

    `removed`: the entries that its `removal` has taken, as they were.
    Memory: the compressed entries so far and one inflated block. `add` works in slices, that others
    may run in between.
    """

    def __init__(
        self,
        context: ManifestContext,
        *,
        codec: str = "deflate",
        removal: Removal | None = None,
    ) -> None:
        self._context, self._codec, self._removal = context, codec, removal
        self.removed: list[ManifestEntry] = []
        paths = removal.paths if removal else ()
        self._removable = frozenset(encode_bytes(path.encode()) for path in paths)
        self._kind = partition_type(context.spec, context.schema)
        self._shape = entry_shape(context.format_version, self._kind)
        self._field_ids = tuple(field.field_id for field in context.spec.fields)
        self._encode = entry_encoder(context.format_version, self._kind)
        self._encode_partition = partition_encoder(self._kind)
        # A merge has time; files are removed while a commit waits.
        level = DEFLATE_LEVEL_FAST if removal else DEFLATE_LEVEL
        self._pool = BlockPool(codec, level=level)
        self._blocks: list[EncodedBlock] = []
        # A removal compresses nothing before its first file: most manifests have none.
        self._waiting: list[tuple[int, bytes, bool]] = []
        self._cuts: list[Cut] | None = None
        self._splices: dict[bytes, Splice] = {}
        self._partitions: dict[str, tuple[object, ...]] = {}
        self._files_count = self._rows_count = self._work = 0
        self._min_sequence_number: int | None = None

    def add(self, row: ManifestFile, content: bytes) -> Iterator[None]:
        """Add the live entries of a manifest; yields after each slice of the work.

        Errors: `InvalidMetadataError`, also where it does not hold what its row says;
        `UnsupportedError` for a codec, or for partition values whose type is not known any more.
        They name the manifest. The merge is of no use after an error.
        """
        with naming(row):
            header = read_header(content)
            check = self._check(row, header)
            if schema_shape(header.metadata["avro.schema"]) == self._shape and self._has_ids(row):
                yield from self._spliced(row, content, header, check)
            else:
                yield from self._encoded_anew(row, content, header, check)

    def finish(self, sync: bytes) -> EncodedManifest:
        """Return the merged manifest. `sync` has 16 bytes."""
        self._resume()
        self._blocks += self._pool.flush()
        for splice in self._splices.values():
            self._files_count += splice.files_count
            self._rows_count += splice.rows_count
            self._note_partitions(splice.partitions.values())
            self._note_sequence_number(splice.min_sequence_number)
        self._splices.clear()
        header = manifest_header(self._context, self._codec, sync)
        content = encode_container(header, self._blocks, sync)
        return EncodedManifest(
            content=content,
            manifest_length=len(content),
            existing_files_count=self._files_count,
            deleted_files_count=len(self.removed),
            existing_rows_count=self._rows_count,
            deleted_rows_count=sum(entry.data_file.record_count for entry in self.removed),
            partitions=summarize_partitions(self._kind, self._partitions.values()),
            min_sequence_number=self._min_sequence_number,
        )

    def _is_slice_full(self, work: int) -> bool:
        """Count work; a slice spans manifests of one file, and ends within large ones."""
        self._work += work
        if self._work < _SLICE:
            return False
        self._work = 0
        return True

    def _take(self, count: int, content: bytes, *, is_compressed: bool = False) -> None:
        """Take over entries; a whole block, if it is compressed."""
        if self._removal is not None and not self.removed:
            self._waiting.append((count, content, is_compressed))
            return
        self._resume()
        self._append(count, content, is_compressed)

    def _resume(self) -> None:
        """Take over what has waited for a removed file."""
        waiting, self._waiting = self._waiting, []
        for entries in waiting:
            self._append(*entries)

    def _append(self, count: int, content: bytes, is_compressed: bool) -> None:
        if is_compressed:
            self._blocks.append((count, content))
        else:
            self._blocks += self._pool.add(count, content)

    def _check(self, row: ManifestFile, header: Header) -> RowCheck:
        context = self._context
        if row.content != context.content or row.partition_spec_id != context.spec.spec_id:
            raise InvariantError(f"{row.manifest_path}: of another content or partition spec")
        if manifest_content(header) != row.content:
            raise InvalidMetadataError(f"not of the content {row.content.name} that its row says")
        if not self._has_ids(row) and self._removal is None and self._cuts is None:
            raise InvariantError(f"{row.manifest_path}: its files have no row ids to keep yet")
        return RowCheck(row, context.spec, manifest_schema(header))

    def _has_ids(self, row: ManifestFile) -> bool:
        """Return whether the files of a manifest have their row ids, if they are to have some. In a
        table from before version 3 they get them with the first commit that lists the manifest."""
        is_data = row.content == ManifestContent.DATA
        return self._context.format_version < 3 or not is_data or row.first_row_id is not None

    # --- Entries laid out as ours ----------------------------------------------------------------

    def _spliced(
        self, row: ManifestFile, content: bytes, header: Header, check: RowCheck
    ) -> Iterator[None]:
        splice = self._splice(row, header.metadata["avro.schema"], check)
        view, may_move = memoryview(content), header.codec == self._codec
        for block, raw in iter_raw_blocks(content, header):
            count, spliced = splice_block(raw, block.count, splice)
            if spliced is raw and may_move and count >= SMALL_BLOCK:
                # Merged before: nothing has changed, so it need not be compressed again.
                self._take(count, bytes(view[block.start : block.stop]), is_compressed=True)
            elif count:
                self._take(count, spliced)
            if self._is_slice_full(block.count):
                yield
        splice.finish()

    def _splice(self, row: ManifestFile, schema_text: bytes, check: RowCheck) -> Splice:
        splice = self._splices.get(schema_text)
        if splice is None:
            splice = Splice(
                entry_parts(schema_text),
                self._field_ids,
                row,
                check,
                removable=self._removable,
                remove=self._remover(schema_text),
                cuts=self._cuts,
            )
            self._splices[schema_text] = splice
        splice.begin(row, check)
        return splice

    def _remover(self, schema_text: bytes) -> Remove:
        decoder = record_decoder(schema_text)
        spec_id = self._context.spec.spec_id

        def remove(raw: bytes, position: int, first_row_id: int | None) -> bytes:
            record, _ = decode_record(decoder, raw, position)
            written = entry_from_record(record, self._field_ids, spec_id)
            row = self._splices[schema_text].row
            entry = next(iter(inherit((written,), replace(row, first_row_id=first_row_id))))
            return self._gone(entry) or b""

        return remove

    def _gone(self, entry: ManifestEntry) -> bytes | None:
        """Return a live entry as a removed one; None if it stays."""
        removal = self._removal
        if removal is None or entry.data_file.file_path not in removal.paths:
            return None
        if not removal.takes(entry):
            return None
        self._require_numbers(entry)
        self._note_partitions([entry.data_file.partition])
        self.removed.append(entry)
        return self._encode(
            replace(entry, status=ManifestEntryStatus.DELETED, snapshot_id=removal.snapshot_id)
        )

    # --- Entries of other writers and older versions ---------------------------------------------

    def _encoded_anew(
        self, row: ManifestFile, content: bytes, header: Header, check: RowCheck
    ) -> Iterator[None]:
        entries = read_entries(content, header, self._context.spec)
        for entry in inherit(checked_entries(entries, check), row):
            if entry.is_live:
                self._take(1, self._gone(entry) or self._encode(self._existing(entry)))
            if self._is_slice_full(_DECODED):
                yield

    def _existing(self, entry: ManifestEntry) -> ManifestEntry:
        file = entry.data_file
        version = self._context.format_version
        self._require_numbers(entry)
        self._note_partitions([file.partition])
        self._files_count += 1
        self._rows_count += file.record_count
        number = entry.sequence_number if version > 1 else None
        self._note_sequence_number(number)
        if self._cuts is not None:
            partition = self._encode_partition(file.partition)
            self._cuts.append((partition, -1, file.record_count, number))
        return replace(entry, status=ManifestEntryStatus.EXISTING)

    def _require_numbers(self, entry: ManifestEntry) -> None:
        numbers = entry.sequence_number, entry.file_sequence_number
        if self._context.format_version > 1 and None in numbers:
            raise InvalidMetadataError(
                "manifest entry: no sequence number, and not to be inherited"
            )

    # --- What the row of the merged manifest says ------------------------------------------------

    def _note_partitions(self, partitions: Iterable[tuple[object, ...]]) -> None:
        for partition in partitions:
            # By their text: as keys themselves -0.0 and 0.0 would be one.
            key = repr(partition)
            if key not in self._partitions:
                self._refuse_unknown(partition)
                self._partitions[key] = partition

    def _refuse_unknown(self, partition: tuple[object, ...]) -> None:
        """Refuse a value of a column that no schema of the table has: it could not be written."""
        for field, value in zip(self._kind.fields, partition, strict=True):
            if value is not None and isinstance(field.field_type, UnknownType):
                raise UnsupportedError(
                    f"partition field `{field.name}`: its source column is in no schema any more"
                )

    def _note_sequence_number(self, number: int | None) -> None:
        lowest = self._min_sequence_number
        if number is not None and (lowest is None or number < lowest):
            self._min_sequence_number = number
