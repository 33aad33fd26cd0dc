"""Puffin footers: those of other writers, and damaged ones."""

from __future__ import annotations

import json

import pytest

from committer.errors import InvalidMetadataError, UnsupportedError
from committer.iceberg.puffin import decode_puffin_footer
from tests.fixtures import read_bytes, table_dir


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
