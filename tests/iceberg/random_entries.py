"""Any manifest entries, whose files often differ in the shape of their metrics."""

from __future__ import annotations

from hypothesis import strategies as st

from committer.iceberg.entry.data_file import DataFile, ManifestEntry, ManifestEntryStatus
from tests.support.iceberg.manifest_builders import added_entry, data_file

_COUNT = st.integers(0, 2**62)
_BOUND = st.one_of(
    st.binary(min_size=8, max_size=8), st.binary(max_size=20), st.binary(min_size=60, max_size=70)
)
FIELD_IDS = st.sampled_from([1, 2, 3, 4, 63, 64, 5000, 2_000_000])
_COUNTS = st.one_of(st.none(), st.dictionaries(FIELD_IDS, _COUNT, max_size=5))
_BOUNDS = st.one_of(st.none(), st.dictionaries(FIELD_IDS, _BOUND, max_size=5))


@st.composite
def _files(draw: st.DrawFn) -> DataFile:
    return data_file(
        draw(st.integers(0, 50)),
        record_count=draw(_COUNT),
        file_size_in_bytes=draw(_COUNT),
        file_format=draw(st.sampled_from(["PARQUET", "ORC", "AVRO"])),
        column_sizes=draw(_COUNTS),
        value_counts=draw(_COUNTS),
        null_value_counts=draw(_COUNTS),
        nan_value_counts=draw(_COUNTS),
        lower_bounds=draw(_BOUNDS),
        upper_bounds=draw(_BOUNDS),
        key_metadata=draw(st.one_of(st.none(), st.binary(max_size=5))),
        split_offsets=draw(st.one_of(st.none(), st.just((4,)), st.just((4, 2**30)))),
        sort_order_id=draw(st.one_of(st.none(), st.just(0))),
    )


@st.composite
def entries(draw: st.DrawFn) -> ManifestEntry:
    status = draw(st.sampled_from(list(ManifestEntryStatus)))
    number = draw(_COUNT)
    if status == ManifestEntryStatus.ADDED and draw(st.booleans()):
        return added_entry(draw(_files()))
    return ManifestEntry(status, draw(_COUNT), number, number, draw(_files()))
