"""Commands that several tests of the command line begin with."""

from __future__ import annotations

import io
from uuid import UUID

import pytest

from committer.iceberg.metadata.snapshot import MAIN, SnapshotRef
from committer.iceberg.updates.metadata_update import (
    AddSnapshot,
    SetProperties,
    SetSnapshotRef,
    Update,
)
from committer.ledger_entry import Landed, ProducerEntry, print_entry, property_key
from committer.ports.pointer_swap import LoadedTable
from committer.request.request_format import EncodedRequest
from committer.request.table_identifier import TableIdentifier
from committer.service.admin.table_change import change_table
from committer.service.process.composition import Parts
from tests.support.builders.fixtures import (
    LOCATION_PREFIX,
    expected,
    fixtures_dir,
)
from tests.support.builders.request_builders import build_request
from tests.support.cli.commands import Frazil
from tests.support.iceberg.metadata_builders import build_snapshot

COLUMNS = "id long, name string, at timestamptz"


def create(frazil: Frazil, name: str = "db.flights", *more: str) -> None:
    answer = frazil("table", "create", name, "--schema", COLUMNS, *more)
    assert (answer.code, answer.out) == (0, ""), answer


def request(frazil: Frazil, *, epoch: int = 0, producer: str = "query-1") -> EncodedRequest:
    return build_request(frazil.load(), epoch=epoch, producer=producer)


TABLE = TableIdentifier.parse("db.flights")


def set_property(frazil: Frazil, key: str, text: str) -> None:
    async def work(parts: Parts) -> None:
        async def decide(table: LoadedTable) -> tuple[Update, ...]:
            done = table.metadata.properties.get(key) == text
            return () if done else (SetProperties({key: text}),)

        await change_table(parts.catalog, parts.storage, parts.world, TABLE, decide)

    frazil.with_parts(work)


def change(frazil: Frazil, *updates: Update) -> None:
    """Change the table as another engine does."""

    async def work(parts: Parts) -> None:
        before = (await parts.catalog.load(TABLE)).metadata_location

        async def decide(table: LoadedTable) -> tuple[Update, ...]:
            return updates if table.metadata_location == before else ()

        await change_table(parts.catalog, parts.storage, parts.world, TABLE, decide)

    frazil.with_parts(work)


def add_snapshots(frazil: Frazil, *snapshot_ids: int) -> None:
    """Let another engine append to main, once for each of these snapshots."""
    for snapshot_id in snapshot_ids:
        metadata = frazil.load().metadata
        parent = metadata.current_snapshot_id
        snapshot = build_snapshot(metadata, snapshot_id=snapshot_id, parent=parent)
        change(frazil, AddSnapshot(snapshot), SetSnapshotRef(MAIN, SnapshotRef(snapshot_id)))


def add_branch(frazil: Frazil, name: str, snapshot_id: int) -> None:
    change(frazil, SetSnapshotRef(name, SnapshotRef(snapshot_id)))


def put_landed(frazil: Frazil, producer: str, snapshot_id: int) -> None:
    """Write a producer whose epoch 0 has landed in a snapshot."""
    metadata = frazil.load().metadata
    snapshot = metadata.snapshot_by_id(snapshot_id)
    assert snapshot is not None
    landed = Landed(0, "k", "f", UUID(int=1), snapshot_id, snapshot.sequence_number)
    entry = ProducerEntry(metadata.require_uuid()).with_landed(landed)
    set_property(frazil, property_key(producer), print_entry(entry))


def answer(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text + "\n"))


def bare(name: str) -> tuple[str, ...]:
    """Return the options that read a table of the fixtures where it has been copied to."""
    old, new = LOCATION_PREFIX.rstrip("/"), str(fixtures_dir() / "java")
    file = expected(name)["metadata_location"].replace(old, new)
    return ("--metadata", file, "--rewrite-prefix", f"{old}={new}")
