"""Producers that bring the columns along which their files need, and files of older schemas."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from committer.iceberg.schema.schema import print_schema
from committer.iceberg.updates.metadata_update import Update
from committer.plan.operations.alter import plan_alter
from committer.plan.operations.conflict import Conflict
from committer.ports.pointer_swap import LoadedTable
from committer.reason import Reason
from committer.request.alterations import UnionByName
from committer.request.request_format import EncodedRequest, read_request
from tests.support.builders.alter_requests import build_alter
from tests.support.builders.flights import build_flights, changed
from tests.support.builders.operation_requests import base_of, build_operation
from tests.support.builders.request_builders import build_request, seal, sealed_manifests
from tests.support.faults.faulty_catalog import Fault, FaultyCatalog
from tests.support.memory.requirements_catalog import RequirementsCatalog
from tests.support.service.outside import add_table
from tests.support.service.service_harness import WAREHOUSE, ServiceHarness

VIRTUAL_TIME = True
ADD_X = {"action": "add-column", "name": "x", "type": "int"}
ADD_Y = {"action": "add-column", "name": "y", "type": "int"}


@pytest.fixture(params=["pointer", "requirements"])
def harness(request: pytest.FixtureRequest) -> ServiceHarness:
    harness = ServiceHarness()
    if request.param == "requirements":
        inner = RequirementsCatalog(storage=harness.storage.inner, world=harness.world)
        harness.catalog = FaultyCatalog(inner)
    return harness


def evolved(table: LoadedTable, *documents: Mapping[str, object]) -> LoadedTable:
    """Return the table as it is for a writer that expects these changes."""
    changes = build_alter(table, *documents).request.changes
    updates = plan_alter(changes, table.metadata, "main", now_ms=table.metadata.last_updated_ms)
    assert not isinstance(updates, Conflict)
    plain: tuple[Update, ...] = updates
    return changed(table, *plain)


def bringing(table: LoadedTable, written_for: LoadedTable, producer: str) -> EncodedRequest:
    """Build a request whose files have the columns of `written_for`, and that brings them along."""
    assert table.metadata.table_uuid == written_for.metadata.table_uuid
    return with_columns_of(build_request(written_for, producer=producer), written_for)


def with_columns_of(sealed: EncodedRequest, written_for: LoadedTable) -> EncodedRequest:
    """Let a request bring along the columns of `written_for`."""
    schema = print_schema(written_for.metadata.current_schema)
    union = UnionByName.model_validate(
        {"action": "union-by-name", "schema": schema, "with-ids": True}
    )
    bare = sealed.request.model_copy(update={"changes": (union,), "manifests": ()})
    again = seal(bare, sealed_manifests(sealed))
    return read_request(again.content, key=again.key)


async def columns(harness: ServiceHarness) -> list[str]:
    return [field.name for field in (await harness.load()).current_schema.fields]


async def test_columns_that_a_producer_needs_come_in_the_swap_of_its_files(
    harness: ServiceHarness,
) -> None:
    table = await harness.create_table()
    await harness.publish(build_request(table, producer="loader"))
    await harness.run_until_settled()
    swaps = harness.catalog.calls["swap"]
    await harness.publish(bringing(table, evolved(table, ADD_X), "writer"))
    await harness.run_until_settled()
    metadata = await harness.load()
    assert await harness.quarantined() == []
    assert harness.catalog.calls["swap"] == swaps + 1
    assert (await columns(harness))[-1] == "x"
    assert len(metadata.snapshots) == 2
    head = metadata.current_snapshot
    assert head is not None
    assert head.schema_id == metadata.current_schema_id == 1
    assert len(await harness.live_files()) == 2


async def test_several_producers_that_need_the_same_column_add_it_once(
    harness: ServiceHarness,
) -> None:
    table = await harness.create_table()
    await harness.publish(build_request(table, producer="loader"))
    for number in range(4):
        await harness.publish(bringing(table, evolved(table, ADD_X), f"writer-{number}"))
    await harness.run_until_settled()
    assert await harness.quarantined() == []
    assert (await columns(harness)).count("x") == 1
    assert len((await harness.load()).schemas) == 2
    assert len(await harness.live_files()) == 5


async def operation_on(harness: ServiceHarness, operation: str) -> EncodedRequest:
    """Build an operation that has read the table, and whose files have a column that it lacks."""
    table = await harness.create_table()
    await harness.publish(build_request(table, producer="loader"))
    await harness.run_until_settled()
    table = await harness.catalog.load(table.identifier)
    written_for = evolved(table, ADD_X)
    needs: dict[str, object] = {**base_of(table.metadata), "isolation-level": "serializable"}
    if operation == "overwrite":
        needs["removed-data-files"] = [file.file_path for file in await harness.live_files()]
    needs["on-conflict"] = "fail"
    sealed = build_operation(written_for, operation, producer="writer", files_count=1, needs=needs)
    return with_columns_of(sealed, written_for)


@pytest.mark.parametrize(("operation", "files"), [("overwrite", 1), ("row-delta", 2)])
async def test_columns_that_an_operation_needs_come_in_its_swap(
    harness: ServiceHarness, operation: str, files: int
) -> None:
    request = await operation_on(harness, operation)
    swaps = harness.catalog.calls["swap"]
    await harness.publish(request)
    await harness.run_until_settled()
    assert await harness.quarantined() == []
    assert harness.catalog.calls["swap"] == swaps + 1
    metadata = await harness.load()
    head = metadata.current_snapshot
    assert head is not None
    assert head.schema_id == metadata.current_schema_id == 1
    assert (await columns(harness))[-1] == "x"
    assert (len(metadata.snapshots), len(await harness.live_files())) == (2, files)


@pytest.mark.parametrize("operation", ["overwrite", "row-delta"])
async def test_an_operation_that_conflicts_adds_no_column(
    harness: ServiceHarness, operation: str
) -> None:
    request = await operation_on(harness, operation)
    table = await harness.catalog.load(request.request.identifier)
    await harness.publish(build_request(table, producer="other"))
    await harness.run_until_settled()
    await harness.publish(request)
    await harness.run_until_settled()
    (record,) = await harness.quarantined()
    assert (record.reason, record.is_told_only) == (Reason.CONFLICT, True)
    assert "x" not in await columns(harness)


async def test_a_writer_does_not_describe_columns_as_they_were() -> None:
    """An operator has changed a default and a comment since its files were written."""
    harness = ServiceHarness()
    table = await harness.create_table()
    first: list[Mapping[str, object]] = [
        {"action": "upgrade-format-version", "format-version": 3},
        {"action": "add-column", "name": "gate", "type": "int", "default": 1, "doc": "old words"},
    ]
    then: list[Mapping[str, object]] = [
        {"action": "update-column-default", "name": "gate", "default": 2},
        {"action": "update-column-doc", "name": "gate", "doc": "new words"},
    ]
    await harness.publish(build_alter(table, *first, producer="operator-1"))
    await harness.run_until_settled()
    table = await harness.catalog.load(table.identifier)
    brought = bringing(table, evolved(table, ADD_X), "writer")
    await harness.publish(build_alter(table, *then, producer="operator-2"))
    await harness.run_until_settled()
    await harness.publish(brought)
    await harness.run_until_settled()
    assert await harness.quarantined() == []
    gate = (await harness.load()).current_schema.find("gate")
    assert gate is not None
    assert (gate.write_default, gate.doc) == (2, "new words")
    assert (await columns(harness))[-1] == "x"


async def test_files_with_the_id_of_another_column_are_refused_with_the_reason(
    harness: ServiceHarness,
) -> None:
    """Both writers took the next id: the files of the later one would be read as `x`."""
    table = await harness.create_table()
    await harness.publish(bringing(table, evolved(table, ADD_X), "first"))
    await harness.publish(bringing(table, evolved(table, ADD_Y), "second"))
    await harness.run_until_settled()
    (record,) = await harness.quarantined()
    assert record.reason in (Reason.SCHEMA_MISMATCH, Reason.CONFLICT)
    assert "column `y`: the data files have it as field" in record.message
    assert (await columns(harness))[-1] == "x"
    assert len(await harness.live_files()) == 1


@pytest.mark.parametrize("fault", [Fault.LOST_REPLY, Fault.REQUEST_LOST, Fault.CONFLICT])
async def test_a_lost_answer_adds_columns_and_files_once(
    harness: ServiceHarness, fault: Fault
) -> None:
    table = await harness.create_table()
    harness.catalog.plan(fault)
    await harness.publish(bringing(table, evolved(table, ADD_X), "writer"))
    await harness.run_until_settled()
    assert (await columns(harness)).count("x") == 1
    assert len(await harness.live_files()) == 1
    assert await harness.quarantined() == []
    assert await harness.outstanding() == []


async def test_files_whose_columns_the_table_lacks_are_refused_without_a_union(
    harness: ServiceHarness,
) -> None:
    table = await harness.create_table()
    await harness.publish(build_request(evolved(table, ADD_X), producer="writer"))
    await harness.run_until_settled()
    (record,) = await harness.quarantined()
    assert record.reason == Reason.SCHEMA_MISMATCH


@pytest.mark.parametrize(
    "change",
    [
        {"action": "drop-column", "name": "delay"},
        {"action": "rename-column", "name": "delay", "new-name": "late"},
        {"action": "update-column-type", "name": "delay", "type": "double"},
        {"action": "add-partition-field", "source": "id", "transform": "bucket[4]"},
        {"action": "remove-partition-field", "name": "carrier"},
        {"action": "upgrade-format-version", "format-version": 3},
    ],
    ids=lambda change: str(change["action"]),
)
async def test_files_of_before_a_change_land_after_it(
    harness: ServiceHarness, change: Mapping[str, object]
) -> None:
    """They were written, and perhaps published, for the table as it was."""
    table = await add_table(harness, build_flights(warehouse=WAREHOUSE))
    carrier = ("AA",)
    await harness.publish(build_request(table, producer="before", partition=carrier))
    await harness.publish(build_alter(table, change, producer="operator"))
    await harness.publish(build_request(table, producer="behind", partition=carrier))
    await harness.run_until_settled()
    assert await harness.quarantined() == []
    assert len(await harness.live_files()) == 2
