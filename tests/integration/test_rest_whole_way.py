"""The whole way on Iceberg's own REST catalog: the command makes a table there, `frazil serve`
commits requests, PyIceberg commits beside it, and reads every row once.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitFailedException

from committer.request.transaction import Transaction
from committer.service.process.composition import Parts
from tests.support.builders.request_builders import build_file, build_line, build_manifest, seal
from tests.support.builders.transactions import build_transaction
from tests.support.cli.commands import Frazil
from tests.support.cli.serving import serving, wait_until
from tests.support.servers.rest_server import RestServer

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.timeout(120)]
EPOCHS = 6
ROWS = 10
COLUMNS = pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})])


def rows(first: int) -> pa.Table:
    ids = pa.array(range(first, first + ROWS), pa.int64())
    return pa.table({"id": ids}, schema=COLUMNS)


def publish(frazil: Frazil, name: str, epoch: int, transaction: Transaction | None = None) -> None:
    """Write a data file, and make a request for it durable."""
    loaded = frazil.load(name)
    line = build_line(loaded, epoch=epoch).model_copy(update={"transaction": transaction})
    file = build_file(loaded.metadata, line.attempt, record_count=ROWS)
    path = Path(file.file_path.removeprefix("file://").removeprefix("file:"))
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows(epoch * ROWS), path)
    sealed = seal(line, [build_manifest(loaded.metadata, [file])])

    async def work(parts: Parts) -> None:
        await parts.inbox.put(sealed)

    frazil.with_parts(work)


def append(table: Any, first: int) -> None:
    """Append as PyIceberg does, again where a commit of Frazil came first."""
    while True:
        table.refresh()
        try:
            table.append(rows(first))
        except CommitFailedException:
            continue
        return


def test_a_rest_catalogs_table_is_committed_to_by_frazil_and_by_pyiceberg_beside(
    rest_server: RestServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    variables = {"FRAZIL_CATALOG__URI": rest_server.url}
    frazil = Frazil(tmp_path, monkeypatch, capsys, variables)
    name = "whole.flights"
    checked = frazil("catalog", "check")
    assert checked.code == 0, checked.err
    created = frazil("table", "create", name, "--schema", "id long")
    assert created.code == 0, created.err
    catalog = RestCatalog("theirs", uri=rest_server.url)
    table = catalog.load_table(name)
    with serving(tmp_path, {"FRAZIL_QUEUE__URL": "none", **variables}) as running:
        running.wait_until_ready()
        for epoch in range(EPOCHS):
            publish(frazil, name, epoch)
            if epoch % 2:
                append(table, 1_000 * epoch)

        def has_landed() -> bool:
            found = catalog.load_table(name).scan().to_arrow()
            return len(found) >= (EPOCHS + EPOCHS // 2) * ROWS

        wait_until(has_landed, "all requests have landed")
        assert running.end() == 0
    found = sorted(catalog.load_table(name).scan().to_arrow()["id"].to_pylist())
    ours = list(range(EPOCHS * ROWS))
    theirs = [1_000 * epoch + row for epoch in range(1, EPOCHS, 2) for row in range(ROWS)]
    assert found == sorted(ours + theirs)
    assert frazil("quarantine", "list").lines == []
    # An operator's decision moves the head, which a commit planned before would require.
    before = catalog.load_table(name).current_snapshot()
    assert frazil("producer", "freeze", name, "query-1", "--reason", "the test").code == 0
    assert catalog.load_table(name).current_snapshot() != before
    assert sorted(catalog.load_table(name).scan().to_arrow()["id"].to_pylist()) == found


def test_a_transaction_lands_on_two_tables_of_a_rest_catalog(
    rest_server: RestServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Iceberg's own server applies it table by table: with one client, and while it lives, to all
    of them. That it is atomic is the operator's word, and no probe's."""
    variables = {
        "FRAZIL_CATALOG__URI": rest_server.url,
        "FRAZIL_CATALOG__REST__ATOMIC_TRANSACTIONS": "true",
    }
    frazil = Frazil(tmp_path, monkeypatch, capsys, variables)
    names = ("together.flights", "together.ships")
    for name in names:
        assert frazil("table", "create", name, "--schema", "id long").code == 0
    catalog = RestCatalog("theirs", uri=rest_server.url)

    def has_landed(epochs: int) -> bool:
        counts = [len(catalog.load_table(name).scan().to_arrow()) for name in names]
        return counts == [ROWS * epochs] * 2

    with serving(tmp_path, {"FRAZIL_QUEUE__URL": "none", **variables}) as running:
        running.wait_until_ready()
        for epoch in range(3):
            transaction = build_transaction([frazil.load(name) for name in names])
            for name in names:
                publish(frazil, name, epoch, transaction)
            wait_until(partial(has_landed, epoch + 1), "the transaction has landed")
        assert running.end() == 0
    for name in names:
        snapshots = catalog.load_table(name).snapshots()
        told = [one.summary["frazil.transaction"] for one in snapshots if one.summary]
        assert len(set(told)) == len(snapshots) == 3
    assert frazil("quarantine", "list").lines == []
