from __future__ import annotations

import logging
from hashlib import blake2b
from pathlib import Path

import pytest

from tests.support.servers.dynamodb_server import REGION
from tests.support.servers.s3_server import S3Server
from workers.files.s3_files import S3Access, S3Files
from workers.files.store_access import USUAL_ACCESS, StoreAccess
from workers.sink.fingerprint import epoch_fingerprint, fingerprint_of

ENTRY = b'v1\n{"batchTimestampMs":1}\n{"offset":10}'


def checkpoint_with(folder: Path, *, batch_id: int, entry: bytes) -> Path:
    (folder / "offsets").mkdir(parents=True)
    (folder / "offsets" / str(batch_id)).write_bytes(entry)
    return folder


@pytest.mark.parametrize("form", ["{}", "{}/", "file:{}", "file://{}"])
def test_a_micro_batch_stands_for_its_entry_in_the_offset_log(form: str, tmp_path: Path) -> None:
    folder = checkpoint_with(tmp_path / "c", batch_id=3, entry=ENTRY)
    fingerprint = fingerprint_of(form.format(folder), 3, USUAL_ACCESS)
    assert fingerprint.kind == "spark-offsets"
    assert fingerprint.value == blake2b(ENTRY, digest_size=32).hexdigest()


def test_another_entry_is_another_fingerprint(tmp_path: Path) -> None:
    one = checkpoint_with(tmp_path / "one", batch_id=3, entry=ENTRY)
    two = checkpoint_with(tmp_path / "two", batch_id=3, entry=ENTRY.replace(b"1", b"2"))
    assert fingerprint_of(str(one), 3, USUAL_ACCESS) != fingerprint_of(str(two), 3, USUAL_ACCESS)


def test_without_an_offset_log_the_number_is_all_that_is_known_and_that_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert fingerprint_of(str(tmp_path / "absent"), 3, USUAL_ACCESS) == epoch_fingerprint(3)
        assert fingerprint_of(str(tmp_path / "absent"), 3, USUAL_ACCESS) == epoch_fingerprint(3)
        assert fingerprint_of(str(tmp_path / "absent"), 4, USUAL_ACCESS) == epoch_fingerprint(4)
    assert caplog.text.count("known by their number only") == 1


def test_an_unknown_scheme_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    assert fingerprint_of("nowhere://bucket/c", 3, USUAL_ACCESS) == epoch_fingerprint(3)
    assert "nowhere" in caplog.text


@pytest.mark.server
@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_a_checkpoint_on_s3_is_read_where_the_tables_are(
    scheme: str, s3_server: S3Server, caplog: pytest.LogCaptureFixture
) -> None:
    access = StoreAccess(S3Access(REGION, s3_server.url))
    checkpoint = f"{scheme}{s3_server.new_root().removeprefix('s3')}/checkpoint"
    with S3Files(access.s3).create(f"{checkpoint}/offsets/3") as sink:
        sink.write(ENTRY)
    fingerprint = fingerprint_of(checkpoint, 3, access)
    assert fingerprint.value == blake2b(ENTRY, digest_size=32).hexdigest()
    assert fingerprint_of(checkpoint, 4, access) == epoch_fingerprint(4)
    assert "known by their number only" in caplog.text
