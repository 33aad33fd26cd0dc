"""The whole way on an emulator of each cloud's store, and on an S3 server of another vendor: data
files are published, `frazil serve` commits them and quarantines what is no request, and PyIceberg
reads every row once.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from committer.ports.storage import NewObject
from committer.request.request_key import published_key
from committer.service.process.composition import Parts
from tests.support.builders.request_builders import build_file, build_line, build_manifest, seal
from tests.support.cli.commands import Frazil
from tests.support.cli.serving import serving, wait_until
from tests.support.servers.azurite import ACCOUNT, KEY, TEST_S_MAX, Azurite
from tests.support.servers.dynamodb_server import CREDENTIALS
from tests.support.servers.fake_rest_access import s3_keys
from tests.support.servers.gcs_server import GcsServer
from tests.support.servers.http_proxy import HttpProxy
from tests.support.servers.s3_server import BUILT_S_MAX, S3Server
from tests.support.storages.http_harness import gcs_refusal

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.timeout(120)]
EPOCHS = 3
ROWS = 10
FAR = {"gcs.oauth2.token-expires-at": "4000000000000"}
# More than one write of the mark is sent.
MARK_REFUSALS = 12
COLUMNS = pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})])


@dataclass(frozen=True)
class Place:
    """A store, and the properties by which both Frazil and PyIceberg reach it."""

    root: str
    properties: Mapping[str, str]
    theirs: Mapping[str, str]
    """What PyIceberg needs beside."""


@pytest.fixture(
    params=[
        "gcs",
        pytest.param("adls", marks=pytest.mark.timeout(TEST_S_MAX)),
        pytest.param("versitygw", marks=(pytest.mark.heavy, pytest.mark.timeout(BUILT_S_MAX))),
    ]
)
def place(request: pytest.FixtureRequest) -> Place:
    if request.param == "gcs":
        gcs: GcsServer = request.getfixturevalue("gcs_server")
        # The emulator takes any token.
        token = {"gcs.oauth2.token": "any", **FAR}
        return Place(gcs.new_root(), {"gcs.service.host": gcs.url, **token}, {})
    if request.param == "versitygw":
        s3: S3Server = request.getfixturevalue("versitygw")
        keys = (CREDENTIALS["AWS_ACCESS_KEY_ID"], CREDENTIALS["AWS_SECRET_ACCESS_KEY"])
        properties = {"s3.endpoint": s3.url, "s3.region": s3.region, **s3_keys(*keys)}
        return Place(s3.new_root(), {**properties, "s3.path-style-access": "true"}, {})
    azurite: Azurite = request.getfixturevalue("azurite")
    # PyIceberg reads `container@account` as the name of a container.
    root = azurite.new_root().replace(f"@{ACCOUNT}.dfs.core.windows.net", "")
    return Place(
        root,
        {
            "adls.account-name": ACCOUNT,
            "adls.account-key": KEY,
            "adls.blob-storage-authority": azurite.address,
            "adls.blob-storage-scheme": "http",
        },
        {"adls.dfs-storage-authority": azurite.address, "adls.dfs-storage-scheme": "http"},
    )


def theirs(home: Path, place: Place) -> Any:
    return SqlCatalog(
        "frazil",
        **{
            "uri": f"sqlite:///{home}/catalog.db",
            "warehouse": f"{place.root}/warehouse",
            "py-io-impl": "pyiceberg.io.pyarrow.PyArrowFileIO",
            **place.properties,
            **place.theirs,
        },
    )


def variables(place: Place) -> dict[str, str]:
    def name_of(name: str) -> str:
        return "FRAZIL_CATALOG__" + name.upper().replace(".", "__").replace("-", "_")

    return {
        "FRAZIL_INBOX": f"{place.root}/requests",
        "FRAZIL_CATALOG__WAREHOUSE": f"{place.root}/warehouse",
        **{name_of(name): value for name, value in place.properties.items()},
    }


def publish(frazil: Frazil, table: Any, epoch: int) -> str:
    """Write a data file with PyIceberg's client, and make a request for it durable."""
    loaded = frazil.load()
    line = build_line(loaded, epoch=epoch)
    file = build_file(loaded.metadata, line.attempt, record_count=ROWS)
    ids = [epoch * ROWS + number for number in range(ROWS)]
    with table.io.new_output(file.file_path).create() as stream:
        pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}, schema=COLUMNS), stream)
    sealed = seal(line, [build_manifest(loaded.metadata, [file])])

    async def work(parts: Parts) -> None:
        await parts.inbox.put(sealed)

    frazil.with_parts(work)
    return published_key(sealed.request.inbox_key)


def spoil(frazil: Frazil) -> str:
    """Put something into the inbox that is no request, under the key of one."""
    sealed = seal(build_line(frazil.load(), epoch=EPOCHS), [])
    key = sealed.request.inbox_key

    async def work(parts: Parts) -> None:
        location = parts.inbox.location(key)
        await parts.storage.create([NewObject(location, b"no request\n")])

    frazil.with_parts(work)
    return key


def test_a_table_and_its_requests_on_a_clouds_store_are_committed_and_read_by_pyiceberg(
    place: Place,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    frazil = Frazil(tmp_path, monkeypatch, capsys, variables(place))
    answer = frazil("table", "create", "db.flights", "--schema", "id long")
    assert answer.code == 0, answer.err
    catalog = theirs(tmp_path, place)
    with serving(tmp_path, {"FRAZIL_QUEUE__URL": "none"}) as running:
        running.wait_until_ready()
        for epoch in range(EPOCHS):
            publish(frazil, catalog.load_table("db.flights"), epoch)

        def has_landed() -> bool:
            snapshot = catalog.load_table("db.flights").current_snapshot()
            return bool(snapshot and snapshot.summary["total-records"] == str(EPOCHS * ROWS))

        wait_until(has_landed, "all requests have landed")
        key = spoil(frazil)
        wait_until(lambda: frazil.quarantined() == [key], "the spoilt request is quarantined")
        assert running.end() == 0
    found = catalog.load_table("db.flights").scan().to_arrow()
    assert sorted(found["id"].to_pylist()) == list(range(EPOCHS * ROWS))
    assert frazil("quarantine", "discard", key, "--yes").code == 0
    assert frazil.quarantined() == []


@pytest.mark.heavy
def test_a_mark_that_google_slows_down_delays_no_commit_and_loses_nothing(
    gcs_server: GcsServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Google takes one write a second to a name: refuse the mark's until the storage gives up."""
    with running_proxy(gcs_server.url) as proxy:
        proxy.plan(b"/witness/", *[gcs_refusal(429, "rateLimitExceeded")] * MARK_REFUSALS)
        root, token = gcs_server.new_root(), {"gcs.oauth2.token": "any", **FAR}
        # pyarrow's client must not wait for a proxy in its own process.
        direct = Place(root, {"gcs.service.host": gcs_server.url, **token}, {})
        through = Place(root, {"gcs.service.host": proxy.url, **token}, {})
        frazil = Frazil(tmp_path, monkeypatch, capsys, variables(through))
        assert frazil("table", "create", "db.flights", "--schema", "id long").code == 0
        with serving(tmp_path, {"FRAZIL_QUEUE__URL": "none"}) as running:
            running.wait_until_ready()
            for epoch in range(EPOCHS):
                publish(frazil, theirs(tmp_path, direct).load_table("db.flights"), epoch)
            wait_until(lambda: rows_of(frazil) == EPOCHS * ROWS, "all requests have landed")
            assert proxy.is_planned, "the mark was written before all commits"
            wait_until(lambda: not frazil.outstanding(), "the mark is written, the inbox empty")
            assert running.end() == 0
        assert not proxy.is_planned


@contextmanager
def running_proxy(upstream: str) -> Iterator[HttpProxy]:
    """Run a proxy in a thread with a loop of its own."""
    proxy = HttpProxy(upstream)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def wait_for(work: Coroutine[None, None, object]) -> None:
        asyncio.run_coroutine_threadsafe(work, loop).result(30)

    wait_for(proxy.__aenter__())
    try:
        yield proxy
    finally:
        wait_for(proxy.__aexit__(None, None, None))
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def rows_of(frazil: Frazil) -> int:
    snapshot = frazil.load().metadata.current_snapshot
    return int(snapshot.summary["total-records"]) if snapshot and snapshot.summary else 0
