"""Data files on Google Cloud Storage and on Azure, each on its emulator: whole objects under the
names that the table asks for, or none; and the secrets that tasks use.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from committer.errors import AlreadyExistsError, UnsupportedError
from committer.iceberg.values.types import LongType, StringType
from tests.support.servers.azurite import ACCOUNT, KEY, TEST_S_MAX, Azurite, shared_access
from tests.support.servers.gcs_server import GcsServer
from tests.support.servers.http_proxy import HttpProxy
from tests.support.workers.tables import optional, required, schema
from tests.support.workers.write_target import Target, spec_of, write_rows, writer_of
from workers.arrow.arrow_schema import arrow_schema
from workers.files.adls_files import AdlsAccess, AdlsFiles, VendedSignature, adls_path
from workers.files.file_system import StoredFiles, open_file_system, open_object_store
from workers.files.file_writer import WriterLimits
from workers.files.gcs_files import GcsAccess, GcsFiles, VendedToken, gcs_path
from workers.files.store_access import USUAL_ACCESS, StoreAccess
from workers.files.write_properties import MIB
from workers.sink.fingerprint import epoch_fingerprint, fingerprint_of

TABLE = schema(required(1, "id", LongType()), optional(2, "carrier", StringType()))
BY_CARRIER = spec_of((2, "carrier", "identity"))
FAR_MS = 4_000_000_000_000
IN_AZURE = "abfss://box@lake.dfs.core.windows.net/t/data"


def rows(count: int, *, carrier: str = "A/B") -> pa.RecordBatch:
    columns = [pa.array(range(count), pa.int64()), pa.array([carrier] * count, pa.string())]
    return pa.RecordBatch.from_arrays(columns, schema=arrow_schema(TABLE))


# --- Locations -----------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["abfss", "abfs", "wasb", "wasbs"])
@pytest.mark.parametrize("kind", ["dfs", "blob"])
def test_every_name_of_azure_is_known_and_keys_are_taken_letter_for_letter(
    scheme: str, kind: str
) -> None:
    location = f"{scheme}://box@lake.{kind}.core.windows.net/a%2Fb/c d"
    assert adls_path(location) == "box/a%2Fb/c d"
    assert isinstance(open_file_system(location, USUAL_ACCESS), AdlsFiles)


def test_a_key_of_google_is_taken_letter_for_letter() -> None:
    assert gcs_path("gs://bucket/a%2Fb/c d") == "bucket/a%2Fb/c d"
    assert isinstance(open_file_system("gs://bucket/t/data", USUAL_ACCESS), GcsFiles)


@pytest.mark.parametrize(
    "location",
    [
        *("gs://", "gs:///key", "gs://bucket", "abfss://", "abfss://box@/key", "abfss:///key"),
        "abfss://box@lake.dfs.core.windows.net",
        "abfss://box/key",  # whose account nothing says
        "abfss://box@evil.example/key",
        "abfss://box@lake.dfs.evil.example/key",
        "abfss://box@lake.dfs.core.windows.net:8080/key",
    ],
)
def test_a_location_that_no_client_can_be_made_for_is_refused(location: str) -> None:
    with pytest.raises(UnsupportedError):
        open_file_system(location, USUAL_ACCESS)


def test_the_account_of_a_location_that_names_none_is_the_drivers() -> None:
    access = StoreAccess(adls=AdlsAccess(account="lake"))
    assert isinstance(open_file_system("abfss://box/key", access), AdlsFiles)


# --- On the emulators ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """A folder of an emulator, and its access."""

    root: str
    access: StoreAccess
    missing: str
    """A folder in a bucket that there is not."""
    shows_open_files: bool

    @property
    def target(self) -> Target:
        return Target(f"{self.root}/db/flights", TABLE, BY_CARRIER, access=self.access)

    def client(self) -> fs.FileSystem:
        objects = open_object_store(f"{self.root}/a", self.access)
        assert objects is not None
        return objects._files

    def path(self, location: str) -> str:
        return (gcs_path if location.startswith("gs:") else adls_path)(location)

    def keys(self) -> list[str]:
        """Return the objects that exist, without those that stand for folders."""
        below = fs.FileSelector(self.path(self.root), recursive=True, allow_not_found=True)
        found = self.client().get_file_info(below)
        return sorted(each.path for each in found if each.type == fs.FileType.File)


@pytest.fixture(params=["gcs", pytest.param("adls", marks=pytest.mark.timeout(TEST_S_MAX))])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    if request.param == "gcs":
        gcs: GcsServer = request.getfixturevalue("gcs_server")
        access = StoreAccess(gcs=GcsAccess(gcs.url, is_anonymous=True))
        yield Place(gcs.new_root(), access, "gs://no-such-bucket/t", False)
        return
    azurite: Azurite = request.getfixturevalue("azurite")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", ACCOUNT)
    monkeypatch.setenv("AZURE_STORAGE_KEY", KEY)
    root = azurite.new_root()
    access = StoreAccess(adls=AdlsAccess(authority=azurite.address, scheme="http"))
    yield Place(root, access, root.replace("frazil@", "no-such@"), True)


@pytest.mark.server
def test_rows_are_in_the_objects_that_the_data_files_name(place: Place) -> None:
    [file] = write_rows(place.target, rows(1000))
    assert "/carrier=A%2FB/" in file.file_path
    assert place.keys() == [place.path(file.file_path)]
    info = place.client().get_file_info(place.path(file.file_path))
    assert info.size == file.file_size_in_bytes
    with place.client().open_input_file(place.path(file.file_path)) as source:
        assert pq.read_table(source).column("id").to_pylist() == list(range(1000))


@pytest.mark.server
def test_a_file_is_opened_for_ranged_reads(place: Place) -> None:
    [file] = write_rows(place.target, rows(1000))
    opened: StoredFiles = pickle.loads(pickle.dumps(StoredFiles(place.access)))
    with opened(file.file_path) as source:
        assert source.size() == file.file_size_in_bytes
        assert source.read_at(4, file.file_size_in_bytes - 4) == b"PAR1"
        assert pq.ParquetFile(source).read_row_group(0, ["id"]).num_rows == 1000
    with pytest.raises(FileNotFoundError):
        opened(f"{place.root}/data/none.parquet").read(1)


@pytest.mark.server
def test_an_object_has_its_bytes_when_its_file_is_closed(place: Place) -> None:
    files = open_file_system(place.root, place.access)
    location = f"{place.root}/data/large.parquet"
    sink = files.create(location)
    # More than one part, so that some are sent before.
    for _ in range(5):
        sink.write(bytes(6 * MIB))
    if not place.shows_open_files:
        assert place.keys() == []
    sink.close()
    files.make_durable([location])
    assert place.client().get_file_info(place.path(location)).size == 30 * MIB


@pytest.mark.server
def test_a_location_that_is_taken_is_refused_and_stays(place: Place) -> None:
    files = open_file_system(place.root, place.access)
    location = f"{place.root}/data/one.parquet"
    with files.create(location) as sink:
        sink.write(b"first")
    with pytest.raises(AlreadyExistsError, match=location):
        files.create(location)
    with place.client().open_input_file(place.path(location)) as source:
        assert source.read() == b"first"


@pytest.mark.server
def test_a_task_that_fails_leaves_no_object(place: Place) -> None:
    kept = write_rows(place.target, rows(10))
    limits = WriterLimits(buffered_bytes=4096, staged_bytes=1024, open_files=1)
    writer = writer_of(place.target, limits=limits)
    with pytest.raises(RuntimeError, match="the task fails"), writer:
        for carrier in ("AA", "BB", "CC"):
            writer.write(rows(2000, carrier=carrier))
        assert len(place.keys()) > 1, "no file was finished before the failure"
        raise RuntimeError("the task fails")
    assert place.keys() == [place.path(file.file_path) for file in kept]
    open_file_system(place.root, place.access).delete(f"{place.root}/data/absent.parquet")


@pytest.mark.server
def test_a_bucket_that_there_is_not_is_found_out_by_the_write(place: Place) -> None:
    with pytest.raises(OSError, match=r"(?i)not.?found|does not exist"):
        write_rows(replace(place.target, location=place.missing), rows(1))


@pytest.mark.server
def test_the_offset_log_of_a_checkpoint_there_is_read(place: Place) -> None:
    checkpoint = f"{place.root}/checkpoint"
    with open_file_system(checkpoint, place.access).create(f"{checkpoint}/offsets/3") as sink:
        sink.write(b"offsets")
    assert fingerprint_of(checkpoint, 3, place.access).kind == "spark-offsets"
    assert fingerprint_of(checkpoint, 4, place.access) == epoch_fingerprint(4)


# --- Secrets -------------------------------------------------------------------------------------


@pytest.mark.server
async def test_a_task_shows_google_the_token_that_came_with_it(gcs_server: GcsServer) -> None:
    async with HttpProxy(gcs_server.url) as proxy:
        token = VendedToken("for-an-hour", FAR_MS)
        access = StoreAccess(gcs=GcsAccess(proxy.url, token=token))
        target = Target(gcs_server.new_root(), TABLE, access=access)
        [file] = await asyncio.to_thread(write_rows, target, rows(10))
        shown = {dict(request.headers).get("Authorization") for request in proxy.received}
    assert shown == {"Bearer for-an-hour"}
    own = open_object_store(target.location, StoreAccess(gcs=GcsAccess(gcs_server.url, True)))
    assert own is not None
    assert (await asyncio.to_thread(own.read, file.file_path))[:4] == b"PAR1"


@pytest.mark.server
@pytest.mark.timeout(TEST_S_MAX)
def test_a_task_writes_to_azure_with_the_signature_that_came_with_it(
    azurite: Azurite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AZURE_STORAGE_KEY", raising=False)
    usual = AdlsAccess(authority=azurite.address, scheme="http")

    def write(text: str) -> str:
        signature = VendedSignature(ACCOUNT, text, FAR_MS)
        access = StoreAccess(adls=replace(usual, signature=signature))
        target = Target(azurite.new_root(), TABLE, access=access)
        [file] = write_rows(target, rows(10))
        files = open_object_store(target.location, access)
        assert files is not None
        assert files.read(file.file_path)[:4] == b"PAR1"
        return file.file_path

    good = shared_access(ends_ms=FAR_MS)
    assert write(good) != write(f"?{good}")
    for refused in (shared_access(ends_ms=1_700_000_000_000), "sv=2020-12-06&sig=no"):
        with pytest.raises(OSError, match=r"(?i)authenticat|authoriz|40[13]"):
            write(refused)
    with pytest.raises(OSError, match=r"(?i)permission|authoriz|403"):
        write(shared_access(ends_ms=FAR_MS, permissions="rl"))


def test_a_secret_of_azure_is_shown_to_its_own_account_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", "own")
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", "hush")
    given: list[tuple[str, str | None]] = []

    def note(account: str, *, sas_token: str | None = None, **_: object) -> None:
        given.append((account, sas_token))

    monkeypatch.setattr(fs, "AzureFileSystem", note)
    vended = AdlsAccess(signature=VendedSignature("lake", "vended", FAR_MS))
    for account in ("own", "lake", "another"):
        AdlsFiles(f"abfss://box@{account}.dfs.core.windows.net/key", vended)
    assert given == [("own", "?hush"), ("lake", "?vended"), ("another", None)]
