"""A scan reads the entries of a manifest that the decoder of whole entries finds there."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from committer.errors import InvalidMetadataError, UnsupportedError
from committer.iceberg.entry.data_file import DataFile, ManifestContent, ManifestEntry
from committer.iceberg.expressions.expression import ALWAYS_TRUE, Expression
from committer.iceberg.manifest.manifest import decode_manifest
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.iceberg.manifest.manifest_writer import encode_manifest
from committer.iceberg.metadata.table_metadata import parse_table_metadata
from committer.iceberg.scan import entry_reader
from committer.iceberg.scan.entry_reader import FileFilter, iter_matching_files
from committer.iceberg.scan.metrics_reader import MetricsPattern, Shape, metrics_pattern
from tests.iceberg.random_entries import FIELD_IDS, entries
from tests.iceberg.rows import manifest_row, rows_of
from tests.support.builders.fixtures import expected, read_bytes, table_names
from tests.support.iceberg.manifest_builders import (
    SYNC,
    added_entry,
    context,
    data_file,
    foreign_manifest,
)

METRICS = ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
# Its manifests are not valid Avro: see the fixtures' README.
BROKEN = "v2_identity_fixed_java_quirk"


@pytest.fixture(autouse=True)
def learns_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patterns are for long manifests, and these are short."""
    monkeypatch.setattr(entry_reader, "_READ_BEFORE_PATTERN", 0)


def everything(_: tuple[object, ...]) -> Expression:
    return ALWAYS_TRUE


def with_metrics_of(file: DataFile, field_ids: frozenset[int]) -> DataFile:
    changes: dict[str, object] = {"column_sizes": None}
    for name in METRICS:
        values = getattr(file, name) if field_ids else None
        some = values and {key: value for key, value in values.items() if key in field_ids}
        changes[name] = some
    return replace(file, **changes)  # type: ignore[arg-type]


def read(
    content: bytes, row: ManifestFile, field_ids: frozenset[int], *, deleted: bool = False
) -> list[ManifestEntry]:
    wanted = FileFilter(
        everything,
        field_ids=field_ids,
        keeps_metrics=True,
        **({"keeps": lambda head: True} if deleted else {}),
    )
    spec = decode_manifest(content).spec
    found = iter_matching_files(content, row, spec, wanted)
    return [ManifestEntry(*head, file) for head, file, _ in found]


def decoded(
    content: bytes, row: ManifestFile, field_ids: frozenset[int], *, deleted: bool = False
) -> list[ManifestEntry]:
    return [
        replace(entry, data_file=with_metrics_of(entry.data_file, field_ids))
        for entry in decode_manifest(content, manifest_file=row).entries
        if entry.is_live or deleted
    ]


def fixture_manifests() -> Iterator[tuple[str, ManifestFile]]:
    for name in table_names():
        if name != BROKEN:
            metadata = parse_table_metadata(read_bytes(expected(name)["metadata_location"]))
            for row in rows_of(metadata):
                if row.content == ManifestContent.DATA:
                    yield name, row


@pytest.mark.thorough
@pytest.mark.parametrize("field_ids", [frozenset(), frozenset({1, 2, 5}), frozenset(range(200))])
def test_all_manifests_of_the_fixtures_are_read_as_the_decoder_reads_them(
    field_ids: frozenset[int],
) -> None:
    for name, row in fixture_manifests():
        content = read_bytes(row.manifest_path)
        for deleted in (False, True):
            wanted = decoded(content, row, field_ids, deleted=deleted)
            # By their text: NaN is a partition value too.
            assert repr(read(content, row, field_ids, deleted=deleted)) == repr(wanted), name


# --- Shapes that change from file to file --------------------------------------------------------


@pytest.mark.simulation
@settings(max_examples=60, deadline=None)
@given(
    st.lists(entries(), max_size=12),
    st.booleans(),
    st.sampled_from([1, 2, 3]),
    st.frozensets(FIELD_IDS, max_size=3),
    st.one_of(st.none(), st.just(1000)),
)
def test_any_entries_are_read_as_the_decoder_reads_them(
    written: list[ManifestEntry],
    foreign: bool,
    version: int,
    field_ids: frozenset[int],
    first_row_id: int | None,
) -> None:
    content = encode_manifest(written, context(format_version=version), sync=SYNC).content
    content = foreign_manifest(content) if foreign else content
    row = manifest_row(content, first_row_id=first_row_id if version > 2 else None)
    assert read(content, row, field_ids) == decoded(content, row, field_ids)


@pytest.mark.thorough
def test_files_alike_but_for_their_values_are_read_one_after_the_other() -> None:
    some = [
        data_file(number, upper_bounds={1: struct.pack("<q", number), 2: b"x" * (number % 40)})
        for number in range(300)
    ]
    content = foreign_manifest(
        encode_manifest(map(added_entry, some), context(), sync=SYNC).content
    )
    row = manifest_row(content)
    for field_ids in (frozenset[int](), frozenset({2}), frozenset({1, 4})):
        assert read(content, row, field_ids) == decoded(content, row, field_ids)


def test_only_a_manifest_of_many_files_is_worth_a_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_reader, "_READ_BEFORE_PATTERN", 20)
    shapes: list[Shape] = []

    def recording_pattern(shape: Shape, field_ids: frozenset[int]) -> MetricsPattern:
        shapes.append(shape)
        return metrics_pattern(shape, field_ids)

    monkeypatch.setattr(entry_reader, "metrics_pattern", recording_pattern)
    for count, patterns in ((20, 0), (40, 1)):
        some = (added_entry(data_file(number)) for number in range(count))
        content = encode_manifest(some, context(), sync=SYNC).content
        row, field_ids = manifest_row(content), frozenset({1})
        assert read(content, row, field_ids) == decoded(content, row, field_ids)
        assert len(shapes) == patterns


# --- What a filter leaves out --------------------------------------------------------------------


def test_a_partition_is_judged_once_and_its_files_are_left_out_unread() -> None:
    content = encode_manifest(
        (added_entry(data_file(number)) for number in range(90)), context(), sync=SYNC
    ).content
    judged: list[tuple[object, ...]] = []

    def only_r1(partition: tuple[object, ...]) -> Expression | None:
        judged.append(partition)
        return ALWAYS_TRUE if partition[0] == "r1" else None

    spec = decode_manifest(content).spec
    found = list(iter_matching_files(content, manifest_row(content), spec, FileFilter(only_r1)))
    assert [file.partition[0] for _, file, _ in found] == ["r1"] * 30
    assert len(judged) == len(set(judged)) == 27


def test_metrics_decide_and_are_not_handed_on() -> None:
    content = encode_manifest(
        (added_entry(data_file(number)) for number in range(50)), context(), sync=SYNC
    ).content
    small = struct.pack("<q", 7)
    wanted = FileFilter(
        everything,
        lambda metrics: (metrics.lower_bounds or {}).get(1) == small,
        frozenset({1}),
    )
    spec = decode_manifest(content).spec
    for written in (content, foreign_manifest(content)):
        found = list(iter_matching_files(written, manifest_row(written), spec, wanted))
        assert [file for _, file, _ in found] == [with_metrics_of(data_file(7), frozenset())]


# --- Damage --------------------------------------------------------------------------------------


@pytest.mark.simulation
@settings(max_examples=400, deadline=None)
@given(st.data())
def test_damaged_entries_are_refused_or_read_but_nothing_else_happens(data: st.DataObject) -> None:
    content = encode_manifest(
        (added_entry(data_file(number)) for number in range(5)),
        context(),
        codec="null",
        sync=SYNC,
    ).content
    if data.draw(st.booleans()):
        content = foreign_manifest(content, codec="null")
    row = manifest_row(content)
    damaged = bytearray(content)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(len(content) // 2, len(content) - 1))] = data.draw(
            st.integers(0, 255)
        )
    spec = decode_manifest(content).spec
    wanted = FileFilter(
        everything, field_ids=data.draw(st.sampled_from([frozenset[int](), frozenset({1, 2})]))
    )
    try:
        list(iter_matching_files(bytes(damaged), row, spec, wanted))
    except (InvalidMetadataError, UnsupportedError) as error:
        assert row.manifest_path in str(error)
