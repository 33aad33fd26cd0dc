"""One table that Frazil, Spark with Iceberg Java and PyIceberg change, with a model of its rows.

Here are the steps that change rows; those of refs, layout and files are beside it. After a step the
rows are compared, by Java, DuckDB, and PyIceberg where it can read the table's deletes.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field

import pyarrow as pa
from pyiceberg.catalog import load_catalog

from committer.iceberg.metadata.snapshot import Snapshot
from committer.ledger_entry import MAIN
from committer.ports.pointer_swap import LoadedTable
from tests.integration.beside_model import OWN_COLUMNS, REGIONS, Content, Model
from tests.integration.beside_readers import (
    column_names,
    read_by_duckdb,
    read_by_java,
    read_by_pyiceberg,
)
from tests.integration.changing_rows import Changer
from tests.integration.changing_state import Row, Rows, value_of
from tests.support.integration.java_engine import JavaEngine
from tests.support.integration.real_harness import CATALOG, RealHarness
from workers.requests.written_epoch import WrittenEpoch


@dataclass(slots=True)
class Run:
    """One table with its model.

    `branch_changer`: changes the branch beside main. `other`: a table that is changed in
    transactions with this one. `unread`: why a reader could not read it. `compared`: where each ref
    was compared last, and with which rows.
    """

    harness: RealHarness
    java: JavaEngine
    name: str
    changer: Changer
    model: Model
    branch_changer: Changer | None = None
    other: Run | None = None
    unread: Counter[str] = field(default_factory=Counter)
    compared: dict[str, tuple[str | None, Content]] = field(default_factory=dict)

    # --- Steps of Frazil -------------------------------------------------------------------------

    async def frazil_append(self) -> None:
        rows = self.model.new_rows()
        await self.land(await self.changer.append(rows), {**self.model.main, **rows})

    async def frazil_delete(self) -> None:
        ids = await self.live_ids()
        await self.land(await self.changer.delete_rows(ids), self.model.without(ids))

    async def frazil_update(self) -> None:
        rows = self.model.changed(await self.live_ids())
        await self.land(await self.changer.update_rows(rows), {**self.model.main, **rows})

    async def frazil_upsert(self) -> None:
        rows = {**self.model.changed(await self.live_ids()), **self.model.new_rows()}
        await self.land(await self.changer.upsert_rows(rows), {**self.model.main, **rows})

    async def frazil_overwrite(self) -> None:
        region = self.model.chance.choice(REGIONS)
        rows = self.model.new_rows(region)
        after = {**self.model.without_region(region), **rows}
        await self.land(await self.changer.overwrite_region(region, rows), after)

    async def frazil_delete_region(self) -> None:
        region = await self.live_region()
        await self.land(await self.changer.delete_region(region), self.model.without_region(region))

    async def frazil_delete_files(self) -> None:
        region = await self.live_region()
        await self.land(await self.changer.delete_files(region), self.model.without_region(region))

    async def frazil_compact(self) -> None:
        await self._compact(with_number=True)

    async def frazil_compact_without_number(self) -> None:
        await self._compact(with_number=False)

    async def _compact(self, *, with_number: bool) -> None:
        region = await self.live_region()
        rows = self.model.of_region(region)
        written = await self.changer.compact(region, rows, with_number=with_number)
        await self.land(written, self.model.main)

    async def frazil_copy_on_write(self) -> None:
        region = await self.live_region()
        changed = self.model.changed(self.model.some_ids(region))
        rows = {**self.model.of_region(region), **changed}
        written = await self.changer.copy_on_write(region, rows)
        await self.land(written, {**self.model.main, **rows})

    async def frazil_behind_java(self) -> None:
        """Java appends between the reading and the publication: the change is planned again."""
        ids = await self.live_ids()
        written = await self.changer.delete_rows(ids)
        await self.java_insert()
        await self.land(written, self.model.without(ids))

    async def frazil_two_deletes_at_once(self) -> None:
        """Two deletes of other rows, from one base: their vectors are united (version 3)."""
        ids = [*await self.live_ids(), *(rows := self.model.new_rows(count=1))]
        await self.land(await self.changer.append(rows), {**self.model.main, **rows})
        halves = ids[: len(ids) // 2], ids[len(ids) // 2 :]
        written = [await self.changer.delete_rows(half) for half in halves]
        after = self.model.without(ids)
        await asyncio.gather(self.land(written[0], after), self.land(written[1], after))

    async def land(self, written: WrittenEpoch, after: Rows) -> int:
        """Publish a change of a branch, which has these rows then; return the snapshot."""
        changer = self.changer if written.branch == MAIN else self.branch_changer
        assert changer is not None
        receipt = await changer.publish(written)
        assert receipt.snapshot_id is not None, f"{receipt.conflict}: {receipt.message}"
        self.model.refs[written.branch] = dict(after)
        return receipt.snapshot_id

    # --- What a step begins with -----------------------------------------------------------------

    async def live_ids(self) -> list[int]:
        """Return ids of some rows, at least one."""
        while not (ids := self.model.some_ids()):
            await self.frazil_append()
        return ids

    async def live_region(self) -> str:
        """Return a region with rows."""
        while not (found := sorted({str(row[0]) for row in self.model.main.values()})):
            await self.frazil_append()
        return self.model.chance.choice(found)

    # --- Steps of others -------------------------------------------------------------------------

    async def java_insert(self) -> None:
        await self.insert_by_java(rows := self.model.new_rows())
        self.model.main |= rows

    async def insert_by_java(self, rows: Rows) -> None:
        names = self.model.columns.names
        values = ", ".join(_literals(id, row, names) for id, row in rows.items())
        await self.sql(f"INSERT INTO {self.table} ({', '.join(names.values())}) VALUES {values}")

    async def java_delete(self) -> None:
        ids = await self.live_ids()
        await self.sql(f"DELETE FROM {self.table} WHERE id IN ({_listed(ids)})")
        self.model.main = self.model.without(ids)

    async def java_update(self) -> None:
        ids = await self.live_ids()
        await self.sql(f"UPDATE {self.table} SET text = 'java' WHERE id IN ({_listed(ids)})")
        main = self.model.main
        self.model.main |= {each: (main[each][0], "java", *main[each][2:]) for each in ids}

    async def java_rewrite(self) -> None:
        await self.sql(
            f"CALL {CATALOG}.system.rewrite_data_files(table => '{self.name}',"
            " options => map('rewrite-all', 'true'))"
        )

    async def pyiceberg_append(self) -> None:
        rows = self.model.new_rows()
        await asyncio.to_thread(self._append_by_pyiceberg, rows)
        self.model.main |= rows

    def _append_by_pyiceberg(self, rows: Rows) -> None:
        properties = {"type": "sql", "uri": f"sqlite:///{self.harness.catalog_file}"}
        with closing(load_catalog(CATALOG, **properties)) as catalog:
            table = catalog.load_table(self.name)
            schema = table.schema().as_arrow()
            named = zip(schema.names, table.schema().fields, strict=True)
            columns = {
                name: [_value(id, row, field.field_id) for id, row in rows.items()]
                for name, field in named
            }
            table.append(pa.table(columns, schema=schema))

    @property
    def table(self) -> str:
        return f"{CATALOG}.{self.name}"

    async def sql(self, statement: str) -> list[list[object]]:
        return await asyncio.to_thread(self.java.sql, statement)

    # --- The comparison --------------------------------------------------------------------------

    async def compare(self) -> None:
        """Compare the rows of each branch and tag, and remember those of main's snapshot.

        A ref that names the snapshot which it was compared at has the rows that it had, and so has
        the other table with the metadata that it had.
        """
        table = await self.harness.load(self.name)
        heads = {ref: table.metadata.branch_head(ref) for ref in self.model.refs}
        for ref, head in heads.items():
            at = table.metadata_location if ref == MAIN else _named(head)
            if self.compared.get(ref) != (at, self.model.refs[ref]):
                await self._compare(table, ref)
                self.compared[ref] = at, dict(self.model.refs[ref])
        if head := heads[MAIN]:
            self.model.snapshots[head.snapshot_id] = dict(self.model.main)
        if self.other is not None:
            await self.other.compare()

    async def _compare(self, table: LoadedTable, ref: str) -> None:
        expected = self.model.table(ref)
        names = self.model.columns.names if ref == MAIN else OWN_COLUMNS
        if ref == MAIN:
            assert column_names(table) == list(names.values()), "PyIceberg: columns"
        columns = ["id", *(name for field_id, name in names.items() if field_id != 1)]
        found = await read_by_java(self.java, self.name, ref, columns)
        assert found == expected, f"Java: {ref}"
        for reader in (read_by_duckdb, read_by_pyiceberg):
            theirs = await asyncio.to_thread(reader, table, ref, columns)
            if isinstance(theirs, str):
                self.unread[theirs] += 1
            else:
                assert theirs == expected, f"{reader.__name__}: {ref}"


def _named(snapshot: Snapshot | None) -> str | None:
    return None if snapshot is None else str(snapshot.snapshot_id)


def _value(id: int, row: Row, field_id: int) -> object:
    return id if field_id == 1 else value_of(row, field_id)


def _literals(id: int, row: Row, names: Mapping[int, str]) -> str:
    values = (_value(id, row, field_id) for field_id in names)
    return f"({', '.join('NULL' if one is None else repr(one) for one in values)})"


def _listed(ids: list[int]) -> str:
    return ", ".join(map(str, ids))
