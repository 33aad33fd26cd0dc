"""All that a manifest's entries say is read as the decoder of whole entries reads it."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import BytesIO
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from committer.errors import InvalidMetadataError, InvalidRequestError
from committer.iceberg.avro.container import iter_raw_blocks, read_header
from committer.iceberg.avro.decoder import decode_record, record_decoder
from committer.iceberg.entry.data_file import (
    DataFileContent,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
)
from committer.iceberg.entry.entry_decoder import entry_from_record
from committer.iceberg.entry.map_layouts import MapLayouts
from committer.iceberg.manifest import manifest_reader
from committer.iceberg.manifest.manifest import iter_entries, manifest_spec
from committer.iceberg.manifest.manifest_row import refuse_negative
from committer.iceberg.manifest.manifest_writer import encode_manifest
from committer.iceberg.metadata.table_metadata import parse_table_metadata
from tests.iceberg.random_entries import entries
from tests.iceberg.rows import rows_of
from tests.support.builders.fixtures import expected, read_bytes, table_names
from tests.support.iceberg.manifest_builders import (
    SYNC,
    added_entry,
    context,
    data_file,
    delete_file,
    deletion_vector,
    foreign_manifest,
    walk,
)

# Its manifests are not valid Avro: see the fixtures' README.
BROKEN = "v2_identity_fixed_java_quirk"


def decoded(content: bytes) -> Iterator[ManifestEntry]:
    """Yield each entry by the decoder of whole entries."""
    header = read_header(content)
    spec = manifest_spec(header)
    decoder = record_decoder(header.metadata["avro.schema"])
    field_ids = tuple(field.field_id for field in spec.fields)
    for block, raw in iter_raw_blocks(content, header):
        position = 0
        for _ in range(block.count):
            record, position = decode_record(decoder, raw, position)
            entry = entry_from_record(record, field_ids, spec.spec_id)
            refuse_negative(entry.data_file)
            yield entry
        if position != len(raw):
            raise InvalidMetadataError("manifest: bytes behind the last entry of a block")


def outcome(read: Callable[[bytes], Iterator[ManifestEntry]], content: bytes) -> list[str]:
    """Return the entries read, and the error that ends it. As text: NaN is unlike itself."""
    found: list[str] = []
    try:
        found += map(repr, read(content))
    except InvalidMetadataError as error:
        found.append(str(error))
    return found


def test_all_manifests_of_the_fixtures_are_read_as_the_decoder_reads_them() -> None:
    for name in table_names():
        if name != BROKEN:
            for row in rows_of(
                parse_table_metadata(read_bytes(expected(name)["metadata_location"]))
            ):
                content = read_bytes(row.manifest_path)
                assert outcome(iter_entries, content) == outcome(decoded, content), name


@pytest.mark.simulation
@settings(max_examples=100, deadline=None)
@given(st.lists(entries(), max_size=12), st.booleans(), st.sampled_from([1, 2, 3]))
def test_any_entries_are_read_as_they_were_written(
    written: list[ManifestEntry], foreign: bool, version: int
) -> None:
    content = encode_manifest(written, context(format_version=version), sync=SYNC).content
    content = foreign_manifest(content) if foreign else content
    assert list(map(repr, iter_entries(content))) == outcome(decoded, content)


def test_delete_files_are_read_as_they_were_written() -> None:
    files = [delete_file(1), deletion_vector(2), delete_file(3, file_format="ORC"), delete_file(4)]
    written = list(map(added_entry, files))
    deletes = context(format_version=3, content=ManifestContent.DELETES)
    content = encode_manifest(written, deletes, sync=SYNC).content
    assert list(iter_entries(content)) == written
    assert list(iter_entries(foreign_manifest(content))) == written


@pytest.mark.simulation
@settings(max_examples=400, deadline=None)
@given(st.data())
def test_damaged_entries_are_read_or_refused_as_the_decoder_does(data: st.DataObject) -> None:
    files = [data_file(number, column_sizes={1: 20_000 + number}) for number in range(8)]
    content = encode_manifest(map(added_entry, files), context(), codec="null", sync=SYNC).content
    if data.draw(st.booleans()):
        content = foreign_manifest(content, codec="null")
    damaged = bytearray(content)
    end = read_header(content).end_offset
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(end, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    assert outcome(iter_entries, bytes(damaged)) == outcome(decoded, bytes(damaged))


@pytest.mark.parametrize("foreign", [False, True])
def test_an_entry_with_any_damaged_byte_is_read_or_refused_as_the_decoder_does(
    foreign: bool,
) -> None:
    files = [data_file(number, column_sizes={1: 20_000 + number}) for number in range(3)]
    existing = [ManifestEntry(ManifestEntryStatus.EXISTING, 7, 1, 1, file) for file in files]
    content = encode_manifest(existing, context(), codec="null", sync=SYNC).content
    content = foreign_manifest(content, codec="null") if foreign else content
    end = read_header(content).end_offset
    for place in range(end + (len(content) - end) // 3, end + 2 * (len(content) - end) // 3):
        for change in (1, 2, 3, 0x80):
            damaged = bytearray(content)
            damaged[place] ^= change
            assert outcome(iter_entries, bytes(damaged)) == outcome(decoded, bytes(damaged))


@pytest.mark.parametrize("foreign", [False, True])
def test_no_entry_of_a_known_layout_is_decoded_whole(
    foreign: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [
        data_file(
            number,
            column_sizes={1: 20_000 + number, 2: 2**40 + number, 3: -number},
            nan_value_counts=None,
            upper_bounds={},
            lower_bounds={1: struct.pack("<q", number), 2: b"x" * 300},
        )
        for number in range(1000)
    ]
    content = encode_manifest(map(added_entry, files), context(), sync=SYNC).content
    content = foreign_manifest(content) if foreign else content
    each, read_each = list[int](), MapLayouts._read_each
    # Entries as other tests have them.
    manifest_reader._map_layouts.cache_clear()

    def counting(layouts: MapLayouts, raw: bytes, start: int) -> Any:
        each.append(start)
        return read_each(layouts, raw, start)

    def refuse(*_: object) -> ManifestEntry:
        raise AssertionError("an entry decoded whole")

    monkeypatch.setattr(MapLayouts, "_read_each", counting)
    monkeypatch.setattr(manifest_reader, "entry_from_record", refuse)
    assert [entry.data_file for entry in iter_entries(content)] == files
    assert 0 < len(each) < 20


def test_a_content_that_comes_last_counts() -> None:
    """A walk that stepped over it would take a delete file for data."""
    content = encode_manifest([added_entry(data_file())], context(), sync=SYNC).content
    reader = fastavro.reader(BytesIO(content))
    schema: Any = json.loads(json.dumps(reader.writer_schema))
    records: Any = list(reader)
    fields = next(field["type"] for field in schema["fields"] if field["field-id"] == 2)["fields"]
    fields.append({**fields.pop(0), "type": ["null", "int"]})
    records[0]["data_file"]["content"] = 1
    out = BytesIO()
    kept = {
        key: value.decode()
        for key, value in read_header(content).metadata.items()
        if not key.startswith("avro.")
    }
    fastavro.writer(out, schema, records, metadata=kept)
    found = [entry.data_file for entry in iter_entries(out.getvalue())]
    assert found == [replace(data_file(), content=DataFileContent.POSITION_DELETES)]
    with pytest.raises(InvalidRequestError):
        walk(out.getvalue(), context())
