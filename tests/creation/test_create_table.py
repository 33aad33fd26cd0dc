"""A table is created once, whatever becomes of the answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

from committer.creation.create_table import NewTable, create_table
from committer.errors import CatalogUnavailableError, NoSuchNamespaceError, TableAlreadyExistsError
from committer.iceberg.schema.table_text import parse_columns, parse_partition
from committer.ports.pointer_swap import LoadedTable
from committer.request.table_identifier import TableIdentifier
from tests.support.clock.virtual_time import LoopWorld, VirtualTimeLoop
from tests.support.memory.memory_catalog import MemoryCatalog
from tests.support.memory.memory_storage import MemoryStorage

PLACE, INBOX = "memory://lake", "memory://lake/requests"
FLIGHTS = TableIdentifier(("db",), "flights")


_T = TypeVar("_T")


def run_in_virtual_time(work: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(work())


class LosingCatalog(MemoryCatalog):
    """A catalog that creates, and whose first answers get lost."""

    def __init__(self, lost: int) -> None:
        super().__init__(storage=MemoryStorage())
        self.lost = lost
        self.calls = 0

    async def create_table(self, table: LoadedTable) -> None:
        self.calls += 1
        await super().create_table(table)
        if self.calls <= self.lost:
            raise CatalogUnavailableError("the answer got lost")


def flights(**changes: object) -> NewTable:
    schema = parse_columns("id long, at timestamptz")
    spec = parse_partition("days(at)", schema)
    fields = {"identifier": FLIGHTS, "schema": schema, "partition_spec": spec, "properties": {}}
    return NewTable(**{**fields, **changes})  # type: ignore[arg-type]


def create(catalog: MemoryCatalog, new: NewTable, seed: int = 0) -> LoadedTable:
    world = LoopWorld(seed=seed)
    return run_in_virtual_time(lambda: create_table(catalog, world, new, place=PLACE, inbox=INBOX))


def test_a_creation_whose_answer_is_lost_is_sent_again_and_makes_one_table() -> None:
    catalog = LosingCatalog(lost=2)
    created = create(catalog, flights())
    assert catalog.calls == 3
    assert created.metadata.location == "memory://lake/db/flights"
    assert [field.name for field in created.metadata.default_spec.fields] == ["at_day"]


def test_a_catalog_that_never_answers_is_asked_five_times() -> None:
    catalog = LosingCatalog(lost=9)
    with pytest.raises(CatalogUnavailableError):
        create(catalog, flights())
    assert catalog.calls == 5


def test_a_second_creation_of_a_name_is_refused_and_the_first_stays() -> None:
    catalog = LosingCatalog(lost=0)
    first = create(catalog, flights())
    with pytest.raises(TableAlreadyExistsError):
        create(catalog, flights(properties={"a": "b"}), seed=1)
    assert run_in_virtual_time(lambda: catalog.load(FLIGHTS)) == first


@pytest.mark.parametrize(
    "changes",
    [
        {"location": "memory://lake"},
        {"properties": {"write.data.path": "memory://lake/requests"}},
        {"schema": parse_columns("id long, v variant")},
    ],
)
def test_what_cannot_be_leaves_neither_table_nor_namespace(changes: dict[str, object]) -> None:
    catalog = LosingCatalog(lost=0)
    with pytest.raises(ValueError, match=r"inbox|variant"):
        create(catalog, flights(**changes))
    with pytest.raises(NoSuchNamespaceError):
        run_in_virtual_time(lambda: catalog.namespace_properties(("db",)))


@pytest.mark.parametrize(
    "changes",
    [
        {"location": "memory://elsewhere/flights"},
        {"location": "memory://lake/../elsewhere"},
        {"properties": {"write.data.path": "memory://elsewhere/data"}},
        {"properties": {"write.metadata.path": "memory://elsewhere/metadata"}},
        {"properties": {"write.object-storage.path": "memory://elsewhere"}},
    ],
)
def test_a_table_is_confined_to_the_warehouse_or_to_the_folders_that_are_allowed(
    changes: dict[str, object],
) -> None:
    catalog = LosingCatalog(lost=0)
    with pytest.raises(ValueError, match=r"expected a folder in memory://lake.*security.locations"):
        create(catalog, flights(**changes))
    with pytest.raises(NoSuchNamespaceError):
        run_in_virtual_time(lambda: catalog.namespace_properties(("db",)))


def test_a_table_may_be_in_a_folder_that_is_allowed() -> None:
    where = "memory://elsewhere/flights"
    new = flights(location=where, properties={"write.data.path": f"{where}/files"})
    world, catalog = LoopWorld(seed=0), LosingCatalog(lost=0)
    created = run_in_virtual_time(
        lambda: create_table(
            catalog, world, new, place=PLACE, inbox=INBOX, locations="memory://elsewhere"
        )
    )
    assert created.metadata.location == where
