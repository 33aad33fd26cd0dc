"""One table that Frazil, Spark with Iceberg Java and PyIceberg change, with a model of its rows.

After a step the rows are compared, by Java, DuckDB, and PyIceberg where it can read the table's
deletes.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field

import pyarrow as pa
from pyiceberg.catalog import load_catalog

from tests.integration.changing_rows import Changer, Rows
from tests.integration.java_engine import JavaEngine
from tests.integration.readers import duckdb_with_iceberg, local
from tests.integration.real_harness import CATALOG, RealHarness

REGIONS = ("n", "s", "w")
Model = dict[int, tuple[str, str]]


@dataclass(slots=True)
class Run:
    """One table with its model. `told`: the conflicts that Frazil has told, by code."""

    harness: RealHarness
    java: JavaEngine
    name: str
    changer: Changer
    chance: random.Random
    model: Model = field(default_factory=dict)
    next_id: int = 0
    unread: Counter[str] = field(default_factory=Counter)
    steps: Counter[str] = field(default_factory=Counter)

    # --- Rows ------------------------------------------------------------------------------------

    def new_rows(self, region: str | None = None) -> Model:
        count = self.chance.randint(1, 6)
        first, self.next_id = self.next_id, self.next_id + count
        return {
            each: (region or self.chance.choice(REGIONS), f"t{each}")
            for each in range(first, self.next_id)
        }

    def some_ids(self, region: str | None = None) -> list[int]:
        known = [each for each, row in self.model.items() if region in (None, row[0])]
        return self.chance.sample(known, min(len(known), self.chance.randint(1, 4)))

    def changed(self, ids: list[int]) -> Model:
        return {each: (self.model[each][0], f"u{self.chance.randrange(1000)}") for each in ids}

    def of_region(self, region: str) -> Model:
        return {each: row for each, row in self.model.items() if row[0] == region}

    def without_region(self, region: str) -> Model:
        return {each: row for each, row in self.model.items() if row[0] != region}

    # --- Steps of Frazil -------------------------------------------------------------------------

    async def frazil_append(self) -> None:
        rows = self.new_rows()
        await self._land(await self.changer.append(rows), {**self.model, **rows})

    async def frazil_delete(self) -> None:
        if ids := self.some_ids():
            after = {each: row for each, row in self.model.items() if each not in ids}
            await self._land(await self.changer.delete_rows(ids), after)

    async def frazil_update(self) -> None:
        if ids := self.some_ids():
            rows = self.changed(ids)
            await self._land(await self.changer.update_rows(rows), {**self.model, **rows})

    async def frazil_upsert(self) -> None:
        rows = {**self.changed(self.some_ids()), **self.new_rows()}
        await self._land(await self.changer.upsert_rows(rows), {**self.model, **rows})

    async def frazil_overwrite(self) -> None:
        region = self.chance.choice(REGIONS)
        rows = self.new_rows(region)
        after = {**self.without_region(region), **rows}
        await self._land(await self.changer.overwrite_region(region, rows), after)

    async def frazil_delete_region(self) -> None:
        region = self.chance.choice(REGIONS)
        await self._land(await self.changer.delete_region(region), self.without_region(region))

    async def frazil_replace_partitions(self) -> None:
        region = self.chance.choice(REGIONS)
        rows = self.new_rows(region)
        after = {**self.without_region(region), **rows}
        await self._land(await self.changer.replace_partitions(rows), after)

    async def frazil_compact(self) -> None:
        region = self.chance.choice(REGIONS)
        if await self.changer.has_files(region):
            written = await self.changer.compact(region, self.of_region(region))
            await self._land(written, self.model)

    async def frazil_copy_on_write(self) -> None:
        region = self.chance.choice(REGIONS)
        if await self.changer.has_files(region):
            rows = {**self.of_region(region), **self.changed(self.some_ids(region))}
            written = await self.changer.copy_on_write(region, rows)
            await self._land(written, {**self.model, **rows})

    async def frazil_behind_java(self) -> None:
        """Java appends between the reading and the publication: the change is planned again."""
        ids = self.some_ids()
        if not ids:
            return
        written = await self.changer.delete_rows(ids)
        await self.java_insert()
        await self._land(
            written, {each: row for each, row in self.model.items() if each not in ids}
        )

    async def frazil_two_deletes_at_once(self) -> None:
        """Two deletes of other rows, from one base: their vectors are united (version 3)."""
        ids = self.some_ids()
        if len(ids) < 2:
            return
        halves = ids[: len(ids) // 2], ids[len(ids) // 2 :]
        written = [await self.changer.delete_rows(half) for half in halves]
        after = {each: row for each, row in self.model.items() if each not in ids}
        await asyncio.gather(self._land(written[0], after), self._land(written[1], after))

    async def _land(self, written: object, after: Rows) -> None:
        receipt = await self.changer.publish(written)  # type: ignore[arg-type]  # one kind alone
        assert receipt.snapshot_id is not None, f"{receipt.conflict}: {receipt.message}"
        self.model = dict(after)

    # --- Steps of others -------------------------------------------------------------------------

    async def java_insert(self) -> None:
        rows = self.new_rows()
        values = ", ".join(f"({each}, '{row[0]}', '{row[1]}')" for each, row in rows.items())
        await self._sql(f"INSERT INTO {self._table} VALUES {values}")
        self.model |= rows

    async def java_delete(self) -> None:
        if ids := self.some_ids():
            await self._sql(f"DELETE FROM {self._table} WHERE id IN ({_listed(ids)})")
            self.model = {each: row for each, row in self.model.items() if each not in ids}

    async def java_update(self) -> None:
        if ids := self.some_ids():
            await self._sql(f"UPDATE {self._table} SET text = 'java' WHERE id IN ({_listed(ids)})")
            self.model |= {each: (self.model[each][0], "java") for each in ids}

    async def java_rewrite(self) -> None:
        await self._sql(
            f"CALL {CATALOG}.system.rewrite_data_files(table => '{self.name}',"
            " options => map('rewrite-all', 'true'))"
        )

    async def pyiceberg_append(self) -> None:
        rows = self.new_rows()
        columns = {
            "id": pa.array(list(rows), pa.int64()),
            "region": [row[0] for row in rows.values()],
            "text": [row[1] for row in rows.values()],
        }
        await asyncio.to_thread(self._append_by_pyiceberg, pa.table(columns))
        self.model |= rows

    def _append_by_pyiceberg(self, rows: pa.Table) -> None:
        properties = {"type": "sql", "uri": f"sqlite:///{self.harness.catalog_file}"}
        with closing(load_catalog(CATALOG, **properties)) as catalog:
            catalog.load_table(self.name).append(rows)

    @property
    def _table(self) -> str:
        return f"{CATALOG}.{self.name}"

    async def _sql(self, statement: str) -> list[list[object]]:
        return await asyncio.to_thread(self.java.sql, statement)

    # --- The comparison --------------------------------------------------------------------------

    async def compare(self) -> None:
        expected = sorted((each, *row) for each, row in self.model.items())
        found = await self._sql(f"SELECT id, region, text FROM {self._table} ORDER BY id")
        assert [tuple(row) for row in found] == expected, "Java"
        location = (await self.harness.load(self.name)).metadata_location
        assert await asyncio.to_thread(_by_duckdb, location) == expected, "DuckDB"
        theirs = await asyncio.to_thread(_by_pyiceberg, location)
        if isinstance(theirs, str):
            self.unread[theirs] += 1
        else:
            assert theirs == expected, "PyIceberg"


def _by_duckdb(location: str) -> list[tuple[object, ...]]:
    with duckdb_with_iceberg() as connection:
        query = "SELECT id, region, text FROM iceberg_scan(?) ORDER BY id"
        return [tuple(row) for row in connection.execute(query, [local(location)]).fetchall()]


def _by_pyiceberg(location: str) -> list[tuple[object, ...]] | str:
    """Return the rows, or why PyIceberg cannot read them: it knows no equality deletes."""
    from pyiceberg.table import StaticTable

    try:
        rows = StaticTable.from_metadata(location).scan().to_arrow().to_pylist()
    except ValueError as error:
        if "equality deletes" not in str(error):
            raise
        return "equality deletes"
    return sorted((row["id"], row["region"], row["text"]) for row in rows)


def _listed(ids: list[int]) -> str:
    return ", ".join(map(str, ids))
