"""Data files on S3: whole objects under the names that the table asks for, or none."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from committer.errors import AlreadyExistsError, UnsupportedError
from committer.iceberg.values.types import LongType, StringType
from tests.support.servers.dynamodb_server import REGION
from tests.support.servers.s3_server import OUTSIDER, VENDED, VENDED_BUCKET, S3Server
from tests.support.workers.tables import optional, required, schema
from tests.support.workers.write_target import Target, spec_of, write_rows, writer_of
from workers.arrow.arrow_schema import arrow_schema
from workers.files.file_system import StoredFiles, open_file_system
from workers.files.file_writer import WriterLimits
from workers.files.s3_files import S3Access, S3Files, VendedKeys, s3_path
from workers.files.store_access import USUAL_ACCESS, StoreAccess
from workers.files.write_properties import MIB

TABLE = schema(required(1, "id", LongType()), optional(2, "carrier", StringType()))
BY_CARRIER = spec_of((2, "carrier", "identity"))


def rows(count: int, *, carrier: str = "A/B") -> pa.RecordBatch:
    columns = [pa.array(range(count), pa.int64()), pa.array([carrier] * count, pa.string())]
    return pa.RecordBatch.from_arrays(columns, schema=arrow_schema(TABLE))


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n"])
def test_every_name_of_s3_is_known_and_keys_are_taken_letter_for_letter(scheme: str) -> None:
    assert s3_path(f"{scheme}://bucket/a%2Fb/c d") == "bucket/a%2Fb/c d"
    assert isinstance(open_file_system(f"{scheme}://bucket/t/data", USUAL_ACCESS), S3Files)


@pytest.mark.parametrize("location", ["s3://", "s3:///key", "s3://bucket", "s3:bucket/key"])
def test_a_location_without_bucket_or_key_is_refused(location: str) -> None:
    with pytest.raises(UnsupportedError):
        open_file_system(location, USUAL_ACCESS)
    with pytest.raises(UnsupportedError):
        s3_path(location)


def test_what_travels_with_the_tasks_is_where_s3_is_and_no_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
    access = S3Access("eu-central-1", "http://127.0.0.1:8333", is_virtual=True)
    shipped = pickle.dumps(access)
    assert pickle.loads(shipped) == access
    assert b"hush" not in shipped


# --- On a real server ----------------------------------------------------------------------------


class Bucket:
    """A folder of the server's bucket."""

    def __init__(self, server: S3Server) -> None:
        self.access = StoreAccess(S3Access(REGION, server.url))
        self.root = server.new_root()
        host = server.url.partition("://")[2]
        self.files = fs.S3FileSystem(region=REGION, scheme="http", endpoint_override=host)

    def target(self, scheme: str = "s3") -> Target:
        root = f"{scheme}{self.root.removeprefix('s3')}"
        return Target(f"{root}/db/flights", TABLE, BY_CARRIER, access=self.access)

    def keys(self) -> list[str]:
        """Return the objects that exist, without those that stand for folders."""
        below = fs.FileSelector(s3_path(self.root), recursive=True, allow_not_found=True)
        found = self.files.get_file_info(below)
        return sorted(each.path for each in found if each.type == fs.FileType.File)


@pytest.fixture
def bucket(s3_server: S3Server) -> Iterator[Bucket]:
    yield Bucket(s3_server)


@pytest.mark.server
def test_a_file_is_opened_for_ranged_reads(bucket: Bucket) -> None:
    [file] = write_rows(bucket.target(), rows(1000))
    opened: StoredFiles = pickle.loads(pickle.dumps(StoredFiles(bucket.access)))
    with opened(file.file_path) as source:
        assert source.size() == file.file_size_in_bytes
        assert source.read_at(4, file.file_size_in_bytes - 4) == b"PAR1"
    with pytest.raises(FileNotFoundError):
        opened(f"{bucket.root}/data/none.parquet")


@pytest.mark.server
@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_rows_are_in_the_objects_that_the_data_files_name(bucket: Bucket, scheme: str) -> None:
    [file] = write_rows(bucket.target(scheme), rows(1000))
    assert file.file_path.startswith(f"{scheme}://")
    assert "/carrier=A%2FB/" in file.file_path
    assert bucket.keys() == [s3_path(file.file_path)]
    info = bucket.files.get_file_info(s3_path(file.file_path))
    assert info.size == file.file_size_in_bytes
    with bucket.files.open_input_file(s3_path(file.file_path)) as source:
        assert pq.read_table(source).column("id").to_pylist() == list(range(1000))


@pytest.mark.server
def test_an_object_appears_when_its_file_is_whole(bucket: Bucket) -> None:
    files = open_file_system(bucket.root, bucket.access)
    location = f"{bucket.root}/data/large.parquet"
    sink = files.create(location)
    # More than one part, so that some are sent while the object is not there yet.
    for _ in range(3):
        sink.write(bytes(6 * MIB))
    assert bucket.keys() == []
    sink.close()
    files.make_durable([location])
    assert bucket.files.get_file_info(s3_path(location)).size == 18 * MIB


@pytest.mark.server
def test_a_location_that_is_taken_is_refused_and_stays(bucket: Bucket) -> None:
    files = open_file_system(bucket.root, bucket.access)
    location = f"{bucket.root}/data/one.parquet"
    with files.create(location) as sink:
        sink.write(b"first")
    with pytest.raises(AlreadyExistsError, match=location):
        files.create(location)
    with bucket.files.open_input_file(s3_path(location)) as source:
        assert source.read() == b"first"


@pytest.mark.server
def test_a_task_that_fails_leaves_no_object(bucket: Bucket) -> None:
    kept = write_rows(bucket.target(), rows(10))
    limits = WriterLimits(buffered_bytes=4096, staged_bytes=1024, open_files=1)
    writer = writer_of(bucket.target(), limits=limits)
    with pytest.raises(RuntimeError, match="the task fails"), writer:
        for carrier in ("AA", "BB", "CC"):
            writer.write(rows(2000, carrier=carrier))
        assert len(bucket.keys()) > 1, "no file was finished before the failure"
        raise RuntimeError("the task fails")
    assert bucket.keys() == [s3_path(file.file_path) for file in kept]


@pytest.mark.server
def test_deleting_what_is_not_there_is_fine(bucket: Bucket) -> None:
    open_file_system(bucket.root, bucket.access).delete(f"{bucket.root}/data/absent.parquet")


@pytest.mark.server
def test_a_wrong_key_is_found_out_by_the_write(bucket: Bucket) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
        with pytest.raises(OSError, match=r"SIGNATURE_DOES_NOT_MATCH during PutObject"):
            write_rows(bucket.target(), rows(10))
    assert bucket.keys() == []


@pytest.mark.server
def test_a_task_writes_with_the_keys_that_came_with_it(s3_server: S3Server) -> None:
    """In a bucket that the keys of the executor cannot enter."""
    if not s3_server.is_seaweedfs:
        pytest.skip("the keys of FRAZIL_TEST_S3_URL open every bucket: nothing is vended")
    keys = VendedKeys(*VENDED, session_token="", expires_ms=0)
    root = f"s3://{VENDED_BUCKET}/{s3_server.new_root().rpartition('/')[2]}"
    own = S3Access(REGION, s3_server.url)

    def target(access: S3Access) -> Target:
        return Target(root, TABLE, BY_CARRIER, access=StoreAccess(access))

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", OUTSIDER[0])
        patch.setenv("AWS_SECRET_ACCESS_KEY", OUTSIDER[1])
        with pytest.raises(OSError, match="ACCESS_DENIED"):
            write_rows(
                Target(
                    root, TABLE, BY_CARRIER, access=StoreAccess(replace(own, region="eu-west-1"))
                ),
                rows(9),
            )
        [file] = write_rows(
            Target(root, TABLE, BY_CARRIER, access=StoreAccess(replace(own, keys=keys))), rows(10)
        )
    assert S3Files(replace(own, keys=keys)).read(file.file_path)[:4] == b"PAR1"
    S3Files(replace(own, keys=keys)).delete(file.file_path)
