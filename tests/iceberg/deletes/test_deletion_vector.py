"""Deletion vectors: the bytes of Iceberg Java, what PyIceberg reads, and damaged ones."""

from __future__ import annotations

import struct
import tracemalloc
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile

from committer.errors import InvalidMetadataError, InvariantError
from committer.iceberg.deletes.deletion_vector import (
    POSITION_MAX,
    DeletionVector,
    decode_deletion_vector,
    encode_deletion_vector,
)
from committer.iceberg.deletes.puffin import Blob, encode_puffin
from tests.support.builders.fixtures import expected, read_bytes, table_names

VECTORS = [
    pytest.param(file, id=f"{table}-{number}")
    for table in table_names()
    for number, file in enumerate(expected(table)["live_delete_files"])
    if file["file_format"] == "PUFFIN"
]


@pytest.mark.parametrize("file", VECTORS)
def test_vectors_of_the_reference_are_read_and_written_to_the_byte(file: dict[str, int]) -> None:
    start, size = file["content_offset"], file["content_size_in_bytes"]
    blob = read_bytes(str(file["file_path"]))[start : start + size]
    vector = decode_deletion_vector(memoryview(blob), cardinality=file["record_count"])
    assert vector.cardinality == file["record_count"] == len(list(vector))
    assert encode_deletion_vector(vector) == blob
    assert encode_deletion_vector(DeletionVector(vector)) == blob


@st.composite
def position_sets(draw: st.DrawFn) -> set[int]:
    """Draw loose positions, runs and dense stretches, in one and in several upper halves."""
    found = set(draw(st.lists(st.integers(0, POSITION_MAX), max_size=5)))
    found |= set(draw(st.lists(st.integers(0, 200_000), max_size=40)))
    for _ in range(draw(st.integers(0, 2))):
        start = draw(st.integers(0, 3)) * 2**32 + draw(st.integers(0, 100_000))
        step = draw(st.sampled_from([1, 1, 2, 3]))
        found |= set(range(start, start + draw(st.integers(1, 12_000)), step))
    return found


@settings(max_examples=60, deadline=None)
@given(positions=position_sets(), others=position_sets())
def test_what_is_encoded_is_decoded_to_itself(positions: set[int], others: set[int]) -> None:
    vector = DeletionVector(positions)
    blob = encode_deletion_vector(vector)
    decoded = decode_deletion_vector(blob, cardinality=len(positions))
    assert decoded == vector
    assert hash(decoded) == hash(vector)
    assert list(decoded) == sorted(positions)
    assert all(position in decoded for position in list(positions)[:50])
    both = decoded | DeletionVector(others)
    assert list(both) == sorted(positions | others)
    assert encode_deletion_vector(both) == encode_deletion_vector(
        DeletionVector(positions | others)
    )


# PyIceberg's reader fails on no positions, and fills a list up to the highest upper half.
@settings(max_examples=30, deadline=None)
@given(
    positions=st.sets(st.integers(0, 2**34), min_size=1, max_size=30)
    | st.builds(lambda start: set(range(start, start + 5000)), st.integers(0, 70_000))
)
def test_another_library_reads_the_same_positions(positions: set[int]) -> None:
    vector = DeletionVector(positions)
    puffin = encode_puffin([blob_of(encode_deletion_vector(vector))])
    (found,) = deletion_vectors_from_puffin_file(PuffinFile(puffin.content))
    assert found.to_vector().to_pylist() == sorted(positions)


def blob_of(content: bytes) -> Blob:
    return Blob(
        type="deletion-vector-v1",
        fields=(2147483645,),
        snapshot_id=-1,
        sequence_number=-1,
        content=content,
        properties={"referenced-data-file": "file:/a"},
    )


def test_positions_have_limits() -> None:
    assert list(DeletionVector([POSITION_MAX, 0])) == [0, POSITION_MAX]
    for position in (-1, POSITION_MAX + 1, 2**64):
        with pytest.raises(InvariantError, match="not within 0 and"):
            DeletionVector([3, position])
        assert position not in DeletionVector([3])


def test_a_vector_does_not_share_what_it_was_made_of() -> None:
    first, second = DeletionVector([1]), DeletionVector([2])
    assert list(first | second) == [1, 2]
    assert list(first) == [1]
    assert first != second
    assert first != [1]
    assert repr(first | second) == "DeletionVector(cardinality=2)"


# --- Foreign and damaged bytes -------------------------------------------------------------------


def framed(vector: bytes, magic: bytes = b"\xd1\xd3\x39\x64") -> bytes:
    """Build a blob with a right length and checksum, whatever its content."""
    covered = magic + vector
    return len(covered).to_bytes(4, "big") + covered + crc32(covered).to_bytes(4, "big")


def bitmaps(*keyed: tuple[int, bytes], count: int | None = None) -> bytes:
    number = len(keyed) if count is None else count
    return struct.pack("<Q", number) + b"".join(
        struct.pack("<I", key) + each for key, each in keyed
    )


def u16(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}H", *values)


def plain(*containers: tuple[int, int, bytes]) -> bytes:
    """Build a bitmap without runs, of containers: key, cardinality, content. Offsets are zeros."""
    return (
        struct.pack("<II", 12346, len(containers))
        + b"".join(u16(key, cardinality - 1) for key, cardinality, _ in containers)
        + bytes(4 * len(containers))
        + b"".join(content for _, _, content in containers)
    )


def with_runs(cardinality: int, *runs: tuple[int, int]) -> bytes:
    """Build a bitmap of one run container: start and length of each run."""
    pairs = b"".join(u16(start, length - 1) for start, length in runs)
    return struct.pack("<I", 12347) + b"\1" + u16(0, cardinality - 1) + u16(len(runs)) + pairs


EMPTY = plain()


def test_empty_bitmaps_below_the_highest_key_are_read() -> None:
    """The reference writes one for every key up to the highest."""
    blob = framed(bitmaps((0, EMPTY), (1, EMPTY), (2, plain((0, 1, u16(5))))))
    assert list(decode_deletion_vector(blob)) == [2 * 2**32 + 5]
    assert list(decode_deletion_vector(framed(bitmaps()))) == []


def test_containers_of_every_kind_are_read() -> None:
    bits = bytearray(8192)
    bits[:625] = b"\xff" * 625
    blob = framed(
        bitmaps(
            (0, plain((0, 2, u16(1, 9)), (7, 5000, bytes(bits)))), (9, with_runs(6, (3, 4), (9, 2)))
        )
    )
    wanted = [1, 9, *range(7 << 16, (7 << 16) + 5000)]
    assert list(decode_deletion_vector(blob)) == wanted + [
        (9 << 32) + low for low in (3, 4, 5, 6, 9, 10)
    ]


def test_bytes_do_not_depend_on_how_containers_were_written() -> None:
    loose = framed(bitmaps((0, plain((0, 6, u16(*range(6)))))))
    assert encode_deletion_vector(decode_deletion_vector(loose)) == encode_deletion_vector(
        DeletionVector(range(6))
    )
    poor = framed(bitmaps((0, with_runs(3, (1, 1), (3, 1), (5, 1)))))
    assert encode_deletion_vector(decode_deletion_vector(poor)) == encode_deletion_vector(
        DeletionVector([1, 3, 5])
    )


GOOD = plain((0, 2, u16(1, 9)))
DAMAGED = {
    "nothing": b"",
    "a length only": bytes(4),
    "a wrong length": b"\0\0\0\x09" + framed(bitmaps((0, GOOD)))[4:],
    "bytes behind it": framed(bitmaps((0, GOOD))) + b"\0",
    "a wrong magic": framed(bitmaps((0, GOOD)), magic=b"\xd1\xd3\x39\x65"),
    "a wrong checksum": framed(bitmaps((0, GOOD)))[:-1] + b"\0",
    "no count": framed(b"\1\0\0"),
    "an absurd count": framed(bitmaps((0, GOOD), count=2**63)),
    "one bitmap too few": framed(bitmaps((0, plain((0, 40, u16(*range(40))))), count=2)),
    "one bitmap too many": framed(bitmaps((0, GOOD), (1, GOOD), count=1)),
    "keys out of order": framed(bitmaps((1, GOOD), (0, GOOD))),
    "a key twice": framed(bitmaps((1, GOOD), (1, GOOD))),
    "a negative key": framed(bitmaps((2**31, GOOD))),
    "a wrong cookie": framed(bitmaps((0, b"\x01" + GOOD[1:]))),
    "too many containers": framed(bitmaps((0, struct.pack("<II", 12346, 65537) + bytes(99)))),
    "containers that are not there": framed(bitmaps((0, struct.pack("<II", 12346, 9) + bytes(9)))),
    "runs that are not there": framed(bitmaps((0, struct.pack("<I", 0xFFFF303B) + bytes(9)))),
    "containers out of order": framed(bitmaps((0, plain((1, 1, u16(1)), (0, 1, u16(1)))))),
    "an array out of order": framed(bitmaps((0, plain((0, 3, u16(1, 9, 2)))))),
    "a value twice": framed(bitmaps((0, plain((0, 2, u16(9, 9)))))),
    "an array that ends early": framed(bitmaps((0, plain((0, 4096, u16(1, 2)))))),
    "a bitset of another cardinality": framed(bitmaps((0, plain((0, 5000, b"\xff" * 8192))))),
    "a bitset that ends early": framed(bitmaps((0, plain((0, 65536, b"\xff" * 8191))))),
    "no runs": framed(bitmaps((0, with_runs(1)))),
    "runs out of order": framed(bitmaps((0, with_runs(4, (9, 2), (3, 2))))),
    "runs that overlap": framed(bitmaps((0, with_runs(4, (3, 2), (4, 2))))),
    "runs that touch": framed(bitmaps((0, with_runs(4, (3, 2), (5, 2))))),
    "a run beyond its container": framed(bitmaps((0, with_runs(9, (65530, 9))))),
    "runs of another cardinality": framed(bitmaps((0, with_runs(5, (3, 2), (9, 2))))),
}


@pytest.mark.parametrize("blob", DAMAGED.values(), ids=DAMAGED.keys())
def test_what_is_no_vector_is_refused_with_its_place(blob: bytes) -> None:
    """Before the bitmap library sees it, which would say no more than `damaged`."""
    with pytest.raises(InvalidMetadataError, match=r"^s3://b/v\.puffin at 4: ") as caught:
        decode_deletion_vector(blob, where="s3://b/v.puffin at 4")
    assert "damaged" not in str(caught.value)


def test_another_cardinality_is_refused() -> None:
    blob = encode_deletion_vector(DeletionVector([1, 2]))
    with pytest.raises(InvalidMetadataError, match="2 positions, expected 3"):
        decode_deletion_vector(blob, cardinality=3)


@pytest.mark.thorough
@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_changed_bytes_under_a_right_checksum_are_refused_or_a_vector(data: st.DataObject) -> None:
    """A vector that passes the checks is sound: as many positions, ascending, and encodable."""
    sets = st.sampled_from([range(50), range(0, 90_000, 7), (3, 9, 2**33), range(0, 20_000, 2)])
    vector = bytearray(encode_deletion_vector(DeletionVector(data.draw(sets)))[8:-4])
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(
            st.integers(0, min(len(vector), 80) - 1) | st.integers(0, len(vector) - 1)
        )
        vector[place] = data.draw(st.integers(0, 255))
    size = data.draw(st.just(len(vector)) | st.integers(0, len(vector)))
    try:
        found = decode_deletion_vector(framed(bytes(vector[:size])))
    except InvalidMetadataError:
        return
    positions = list(found)
    assert len(positions) == found.cardinality
    assert positions == sorted(set(positions))
    assert decode_deletion_vector(encode_deletion_vector(found)) == found


def test_a_hostile_vector_costs_no_more_than_a_multiple_of_its_bytes() -> None:
    full = with_runs(65536, (0, 65536))
    many = bitmaps(*((key, full) for key in range(4_000)))
    tracemalloc.start()
    try:
        vector = decode_deletion_vector(framed(many))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert vector.cardinality == 4_000 * 65536
    assert peak < 10 * len(many)


def test_a_range_and_an_array_are_the_same_positions() -> None:
    vector = DeletionVector([3, 5, 1 << 40])
    assert vector.to_array().tolist() == [3, 5, 1 << 40]
    assert (vector & DeletionVector.of_range(4, 6)).to_array().tolist() == [5]
    assert list(DeletionVector.of_range(4, 6)) == [4, 5]
