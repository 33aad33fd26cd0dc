"""Puffin files: those of other writers, ours, and damaged ones."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.table.puffin import PuffinFile

from committer.errors import InvalidMetadataError, UnsupportedError
from committer.iceberg.deletes.puffin import Blob, decode_puffin_footer, encode_puffin
from tests.support.builders.fixtures import fixtures_dir, read_bytes, table_dir
from tests.support.iceberg.puffin_blobs import decode_blob


def test_deletion_vectors_lie_where_the_manifest_entries_say() -> None:
    expected = json.loads((table_dir("v3_deletion_vectors") / "expected.json").read_text())
    vectors = expected["live_delete_files"]
    assert vectors
    for vector in vectors:
        footer = decode_puffin_footer(read_bytes(vector["file_path"]))
        found = [blob for blob in footer.blobs if blob.offset == vector["content_offset"]]
        assert [blob.length for blob in found] == [vector["content_size_in_bytes"]]
        assert found[0].type == "deletion-vector-v1"
        assert found[0].properties["referenced-data-file"] == vector["referenced_data_file"]
        assert found[0].properties["cardinality"] == str(vector["record_count"])
        assert (found[0].snapshot_id, found[0].sequence_number) == (-1, -1)


def test_statistics_blobs_have_their_fields() -> None:
    path = next(table_dir("v2_statistics").glob("metadata/*.stats"))
    footer = decode_puffin_footer(path.read_bytes())
    assert {blob.type for blob in footer.blobs} == {"apache-datasketches-theta-v1"}
    assert all(len(blob.fields) == 1 for blob in footer.blobs)


def puffin(payload: bytes, *, flags: int = 0) -> bytes:
    size = len(payload).to_bytes(4, "little")
    return b"PFA1" + b"PFA1" + payload + size + bytes((flags, 0, 0, 0)) + b"PFA1"


def test_a_compressed_footer_is_not_supported() -> None:
    with pytest.raises(UnsupportedError, match="compressed"):
        decode_puffin_footer(puffin(b"{}", flags=1))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PFA1",
        b"PAR1" * 10,
        puffin(b""),
        puffin(b"[]"),
        puffin(b"\xff"),
        puffin(b'{"blobs": [{}]}'),
        puffin(b'{"blobs": [{"type": 1}]}'),
        puffin(b'{"blobs": 4}'),
        puffin(b"[" * 100_000),
        puffin(b'{"blobs": []}')[8:],
        b"PFA1" + bytes(8) + b"\xff\xff\xff\x7f" + bytes(4) + b"PFA1",
    ],
)
def test_what_is_no_footer_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidMetadataError):
        decode_puffin_footer(content)


def test_errors_name_the_file() -> None:
    with pytest.raises(InvalidMetadataError, match=r"^s3://b/v\.puffin: "):
        decode_puffin_footer(b"PAR1" * 10, where="s3://b/v.puffin")


@pytest.mark.parametrize("place", [-1, 1 << 63, 1 << 90, True, 1.0])
@pytest.mark.parametrize("key", ["offset", "length"])
def test_places_that_no_file_has_are_refused(key: str, place: float) -> None:
    blob: dict[str, object] = {
        "type": "t",
        "fields": [],
        "snapshot-id": 1,
        "sequence-number": 1,
        "offset": 4,
        "length": 0,
    }
    assert decode_puffin_footer(puffin(json.dumps({"blobs": [blob]}).encode())).blobs
    content = puffin(json.dumps({"blobs": [{**blob, key: place}]}).encode())
    with pytest.raises(InvalidMetadataError, match="not understood"):
        decode_puffin_footer(content)


# --- Writing, and reading blobs ------------------------------------------------------------------


def blob(content: bytes, codec: str | None = None, **properties: str) -> Blob:
    return Blob(
        type="t",
        fields=(1, 2),
        snapshot_id=5,
        sequence_number=6,
        content=content,
        compression_codec=codec,
        properties=properties,
    )


def test_what_is_written_is_read_again() -> None:
    encoded = encode_puffin(
        [blob(b"abc", ndv="3"), blob(b""), blob(b"x" * 10_000, "zstd")],
        properties={"created-by": "é"},
    )
    footer = decode_puffin_footer(encoded.content)
    assert footer.blobs == encoded.blobs
    assert footer.properties == {"created-by": "é"}
    assert [found.offset for found in footer.blobs] == [4, 7, 7]
    assert footer.blobs[2].length < 100
    found = [decode_blob(encoded.content, each) for each in footer.blobs]
    assert found == [b"abc", b"", b"x" * 10_000]
    assert decode_puffin_footer(encode_puffin([]).content).blobs == ()


def test_another_library_reads_our_files() -> None:
    encoded = encode_puffin([blob(b"abc", ndv="3"), blob(b"y" * 99, "zstd")])
    theirs = PuffinFile(encoded.content)
    payloads = [theirs.get_blob_payload(each) for each in theirs.footer.blobs]
    assert payloads == [b"abc", b"y" * 99]
    assert theirs.footer.blobs[0].properties == {"ndv": "3"}


def test_statistics_of_the_reference_are_inflated_and_written_again() -> None:
    for path in table_dir("v2_statistics").glob("metadata/*.stats"):
        content = path.read_bytes()
        footer = decode_puffin_footer(content)
        sketches = [decode_blob(content, each) for each in footer.blobs]
        # The family id of a theta sketch's compact form.
        assert [sketch[2] for sketch in sketches] == [3] * len(sketches)
        again = encode_puffin(
            [
                Blob(
                    type=each.type,
                    fields=each.fields,
                    snapshot_id=each.snapshot_id,
                    sequence_number=each.sequence_number,
                    content=sketch,
                    compression_codec="zstd",
                    properties=each.properties,
                )
                for each, sketch in zip(footer.blobs, sketches, strict=True)
            ],
            properties=footer.properties,
        )
        found = decode_puffin_footer(again.content)
        assert found.properties == footer.properties
        assert [decode_blob(again.content, each) for each in found.blobs] == sketches
        assert [(each.type, each.fields) for each in found.blobs] == [
            (each.type, each.fields) for each in footer.blobs
        ]


def test_a_blob_that_is_not_there_or_does_not_inflate_is_refused() -> None:
    encoded = encode_puffin([blob(bytes(range(256)) * 9, "zstd")])
    (written,) = encoded.blobs
    cut = encoded.content[: written.offset + written.length - 1]
    with pytest.raises(InvalidMetadataError, match=r"^v: the blob at 4: \d+ bytes in a file of"):
        decode_blob(cut, written, where="v")
    with pytest.raises(InvalidMetadataError, match=r"^v: the blob at 4: .*zstandard"):
        decode_blob(encoded.content, replace(written, length=written.length - 1), where="v")
    with pytest.raises(UnsupportedError, match=r"^v: the blob at 4: compressed with `lz4`"):
        decode_blob(encoded.content, replace(written, compression_codec="lz4"), where="v")
    with pytest.raises(UnsupportedError, match="`lz4`"):
        encode_puffin([blob(b"", "lz4")])


def test_a_blob_that_inflates_without_end_is_refused() -> None:
    encoded = encode_puffin([blob(bytes(65 << 20), "zstd")])
    assert len(encoded.content) < 10_000
    with pytest.raises(InvalidMetadataError, match="inflates to more than"):
        decode_blob(encoded.content, encoded.blobs[0])


FILES = [*(fixtures_dir() / "java").rglob("*.puffin"), *(fixtures_dir() / "java").rglob("*.stats")]


@pytest.mark.simulation
@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_a_damaged_file_is_refused_or_read_but_never_another_exception(data: st.DataObject) -> None:
    damaged = bytearray(data.draw(st.sampled_from(sorted(FILES))).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    content = bytes(damaged)[: data.draw(st.just(len(damaged)) | st.integers(0, len(damaged)))]
    try:
        footer = decode_puffin_footer(content)
        found = [decode_blob(content, each) for each in footer.blobs]
    except (InvalidMetadataError, UnsupportedError):
        return
    assert len(found) == len(footer.blobs)
