"""The commands that change a table, beside a real committer; PyIceberg reads what they make."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table as PyIcebergTable

from committer.ports.queue import Doorbell
from committer.request.request_format import EncodedRequest, line_digest
from committer.service.process.composition import Parts
from tests.support.builders.request_builders import build_request
from tests.support.cli.commands import Answer, Frazil
from tests.support.cli.serving import serving, wait_until

pytestmark = pytest.mark.server


@pytest.fixture
def frazil(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Frazil]:
    """Run the command beside a committer with a private queue, and one table."""
    frazil = Frazil(tmp_path, monkeypatch, capsys, {"FRAZIL_QUEUE__URL": "private"})
    assert (
        frazil("table", "create", "db.flights", "--schema", "id long, name string, n int").code == 0
    )
    with serving(tmp_path) as running:
        running.wait_until_ready()
        yield frazil


@pytest.fixture
def catalog(tmp_path: Path) -> SqlCatalog:
    return SqlCatalog("frazil", uri=f"sqlite:///{tmp_path}/catalog.db")


def publish(frazil: Frazil, epoch: int, branch: str = "main") -> None:
    """Publish a request as a producer does, and wait until it has landed."""
    sealed = build_request(frazil.load(), epoch=epoch, branch=branch, partition=())

    async def work(parts: Parts) -> None:
        await parts.inbox.put(sealed)
        assert parts.queue is not None
        await parts.queue.announce((_doorbell(sealed),))

    frazil.with_parts(work)
    wait_until(lambda: not frazil.with_parts(lambda parts: _waits(parts, sealed)), "it has landed")


async def _waits(parts: Parts, sealed: EncodedRequest) -> bool:
    return await parts.inbox.contains(sealed.key)


def _doorbell(sealed: EncodedRequest) -> Doorbell:
    request = sealed.request
    digest = line_digest(sealed.content)
    return Doorbell(request.table_uuid, request.inbox_key, digest, sealed.content, None)


def done(frazil: Frazil, *arguments: str) -> Answer:
    answer = frazil("table", *arguments)
    assert answer.code == 0, answer
    return answer


def test_each_command_is_carried_out_and_pyiceberg_reads_what_it_makes(
    frazil: Frazil, catalog: SqlCatalog
) -> None:
    def read() -> PyIcebergTable:
        return catalog.load_table("db.flights")

    publish(frazil, 0)
    first = read().current_snapshot()
    assert first is not None
    answer = done(frazil, "evolve", "db.flights", "--add-column", "at timestamptz 'when'", "--json")
    assert answer.object["state"] == "committed"
    done(frazil, "evolve", "db.flights", "--widen", "n long", "--rename", "name=label")
    done(frazil, "evolve", "db.flights", "--add-partition-field", "day(at)", "--sort-order", "id")
    table = read()
    assert [str(one.field_type) for one in table.schema().fields] == [
        "long",
        "string",
        "long",
        "timestamptz",
    ]
    assert [one.name for one in table.schema().fields] == ["id", "label", "n", "at"]
    assert [one.name for one in table.spec().fields] == ["at_day"]
    assert [str(one.transform) for one in table.sort_order().fields] == ["identity"]
    done(frazil, "branch", "create", "db.flights", "audit", "--max-ref-age", "7d")
    done(frazil, "tag", "create", "db.flights", "start", "--snapshot", str(first.snapshot_id))
    table = read()
    assert table.refs()["start"].snapshot_id == first.snapshot_id
    assert table.refs()["audit"].max_ref_age_ms == 604_800_000
    listed = frazil("table", "branch", "list", "db.flights", "--json").lines
    assert [one["name"] for one in listed] == ["audit", "main"]
    refused = frazil("table", "evolve", "db.flights", "--drop", "no", "--json")
    assert refused.code == 1
    assert "frazil: db.flights: refused: expected a column `no`, found none" in refused.err
    assert refused.object["reason"] == "conflict"
    assert refused.object["conflict"] == "incompatible"


def test_what_was_audited_on_a_branch_is_published_and_rolled_back(
    frazil: Frazil, catalog: SqlCatalog
) -> None:
    publish(frazil, 0)
    done(frazil, "branch", "create", "db.flights", "audit")
    publish(frazil, 0, branch="audit")
    first = frazil.load().metadata.current_snapshot_id
    done(frazil, "fast-forward", "db.flights", "main", "audit")
    metadata = catalog.load_table("db.flights").metadata
    assert metadata.current_snapshot_id == metadata.refs["audit"].snapshot_id != first
    done(frazil, "rollback", "db.flights", "--snapshot", str(first), "--yes")
    assert catalog.load_table("db.flights").metadata.current_snapshot_id == first
    done(frazil, "branch", "remove", "db.flights", "audit")
    assert set(catalog.load_table("db.flights").refs()) == {"main"}
