"""The commands on a REST catalog: the fake one, in a thread, since a command has a loop of its own.

The secret comes from a file, as in a container.
"""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from committer.catalog.rest.client.rest_paths import DEFAULT_ENDPOINTS, REGISTER, UNREGISTER
from committer.catalog.rest.rest_swap import commit_body
from committer.request.table_identifier import TableIdentifier
from committer.storage.disk.local import LocalStorage
from tests.support.builders.table_builders import build_head_swap
from tests.support.cli.commands import Frazil
from tests.support.servers.fake_rest import FakeRest

FLIGHTS = TableIdentifier(("db",), "flights")


class Served:
    """A fake catalog that serves in a thread of its own."""

    def __init__(self, folder: Path) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.fake = FakeRest(LocalStorage(), warehouse=f"file://{folder}/warehouse")
        self.run(self.fake.__aenter__())

    def run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10.0)

    def commit(self) -> str:
        """Commit as another writer; return the metadata location."""
        swap = build_head_swap(self.fake.tables.table(FLIGHTS))
        (table,) = self.run(self.fake.tables.commit([commit_body(swap)], self.fake.clock.now_ms))
        location = table.metadata_location
        assert isinstance(location, str)
        return location

    def close(self) -> None:
        self.run(self.fake.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    found = Served(tmp_path)
    found.fake.tokens.credential = "robot:s3cr3t"
    found.fake.features.endpoints = (*DEFAULT_ENDPOINTS, UNREGISTER)
    yield found
    found.close()


@pytest.fixture
def frazil(
    served: Served,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Frazil:
    secret = tmp_path / "credential"
    secret.write_text("robot:s3cr3t\n")
    settings = {
        "FRAZIL_INBOX": f"file://{tmp_path}/requests",
        "FRAZIL_CATALOG__URI": served.fake.url,
        "FRAZIL_CATALOG__CREDENTIAL_FILE": str(secret),
    }
    found = Frazil(tmp_path, monkeypatch, capsys, settings)
    location = f"file://{tmp_path}/warehouse/db/flights"
    created = found("table", "create", "db.flights", "--schema", "id long", "--location", location)
    assert created.code == 0, created.err
    return found


class Asked(io.StringIO):
    """An operator who says yes, after something else has happened."""

    def __init__(self, happens: Callable[[], object]) -> None:
        super().__init__("y\n")
        self._happens = happens

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]  # as of its parent
        self._happens()
        return super().readline(size)


def test_a_dropped_table_is_unregistered_and_a_commit_in_between_is_told(
    frazil: Frazil, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    landed: list[str] = []
    monkeypatch.setattr("sys.stdin", Asked(lambda: landed.append(served.commit())))
    dropped = frazil("table", "drop", "db.flights")
    assert dropped.code == 0
    assert f"its last metadata file is {landed[0]}" in dropped.err
    assert served.fake.counts["POST unregister"] == 1
    assert frazil("table", "register", "db.flights", landed[0]).code == 0
    again = frazil("table", "drop", "db.flights", "--yes")
    assert "came between" not in again.err


def test_a_property_is_set_by_a_commit_that_moves_the_head(frazil: Frazil, served: Served) -> None:
    assert frazil("table", "set", "db.flights", "owner=us").code == 0
    metadata = served.fake.tables.table(FLIGHTS).metadata
    assert metadata.properties["owner"] == "us"
    assert len(metadata.snapshots) == 1
    assert frazil("table", "set", "db.flights", "owner=us").code == 0
    assert len(served.fake.tables.table(FLIGHTS).metadata.snapshots) == 1


def test_a_credential_that_the_token_endpoint_refuses_is_one_sentence(
    frazil: Frazil, served: Served
) -> None:
    served.fake.tokens.credential = "robot:0ther"
    refused = frazil("table", "list")
    assert refused.code == 2
    assert refused.err.count("\n") == 1
    assert "`credential`" in refused.err
    assert "s3cr3t" not in refused.err


def test_the_report_names_what_the_server_offers(frazil: Frazil, served: Served) -> None:
    report = frazil("catalog", "check")
    assert report.code == 0, report.err
    assert "on what a commit requires" in report.out + report.err


@pytest.fixture
def prod(frazil: Frazil, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of another catalog, on SQLite."""
    folder = tmp_path / "config"
    folder.mkdir()
    (folder / ".pyiceberg.yaml").write_text(
        f"catalog:\n  prod:\n    uri: sqlite:///{tmp_path}/prod.db\n"
        f"    warehouse: file://{tmp_path}/lake\n"
    )
    monkeypatch.setenv("PYICEBERG_HOME", str(folder))
    assert frazil("--catalog", "prod", "namespace", "create", "other").code == 0
    return "prod"


def test_a_table_leaves_for_another_catalog_by_its_last_metadata(
    frazil: Frazil, served: Served, prod: str, tmp_path: Path
) -> None:
    served.commit()
    inbox = f"file://{tmp_path}/prod-requests"
    moved = frazil("table", "migrate", "db.flights", "--to", prod, "--to-inbox", inbox, "--yes")
    assert moved.code == 0, moved.err
    assert served.fake.tables.tables == {}
    assert served.fake.counts["POST unregister"] == 1
    shown = frazil("--catalog", prod, "table", "show", "db.flights", "--json")
    assert shown.code == 0, shown.err
    assert '"touched":"yes"' in shown.out


def test_a_table_does_not_leave_for_a_catalog_that_registers_nothing(
    frazil: Frazil, served: Served, prod: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.fake.features.endpoints = tuple(DEFAULT_ENDPOINTS - {REGISTER})
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", served.fake.url)
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__CREDENTIAL", "robot:s3cr3t")
    created = frazil("--catalog", prod, "table", "create", "db.ships", "--schema", "id long")
    assert created.code == 0, created.err
    inbox = f"file://{tmp_path}/lake-requests"
    migrate = ("table", "migrate", "db.ships", "--to", "lake", "--to-inbox", inbox, "--yes")
    refused = frazil("--catalog", prod, *migrate)
    assert refused.code == 1
    assert "takes no metadata file from elsewhere" in refused.err
    listed = frazil("--catalog", prod, "table", "list", "--json")
    assert [line["table"] for line in listed.lines] == ["db.ships"]
