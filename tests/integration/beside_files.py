"""Steps that write manifests and delete files anew, adopt files, and change two tables at once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from committer.iceberg.entry.data_file import DataFileContent, ManifestContent
from committer.iceberg.schema.schema import Schema
from tests.integration.beside_run import Run
from tests.integration.changing_deletes import convert_equality, join_positions
from tests.integration.changing_state import Rows, manifests_of, value_of
from tests.integration.table_orders import run_frazil
from tests.support.builders.transactions import build_transaction
from tests.support.integration.readers import local
from workers.arrow.arrow_schema import arrow_schema

# --- Manifests and delete files ------------------------------------------------------------------


async def frazil_rewrite_manifests(run: Run) -> None:
    await run.live_ids()
    await run.land(await run.changer.rewrite_manifests(), run.model.main)


async def frazil_rewrite_named_manifests(run: Run) -> None:
    await run.live_ids()
    manifests = manifests_of(await run.harness.load(run.name), run.changer.branch)
    data = [one.manifest_path for one in manifests if one.content is ManifestContent.DATA]
    named = run.model.chance.sample(data, min(2, len(data)))
    await run.land(await run.changer.rewrite_manifests(named), run.model.main)


async def frazil_join_positions(run: Run) -> None:
    """Write the position deletes anew: vectors in version 3, position delete files before."""
    if not (await run.changer.state()).deletes(DataFileContent.POSITION_DELETES):
        await run.frazil_delete()
    await run.land(await join_positions(run.changer), run.model.main)


async def frazil_convert_equality(run: Run) -> None:
    """Replace equality deletes by position deletes: PyIceberg can read the table again."""
    if not (await run.changer.state()).deletes(DataFileContent.EQUALITY_DELETES):
        await run.frazil_upsert()
    await run.land(await convert_equality(run.changer), run.model.main)
    assert not (await run.changer.state()).deletes(DataFileContent.EQUALITY_DELETES)


# --- Files of others -----------------------------------------------------------------------------


async def frazil_adopt(run: Run) -> None:
    """Add files that another program has written, each of one partition."""
    table, rows = await run.harness.load(run.name), run.model.new_rows()
    folder = f"{table.metadata.location}/data/adopted-{run.model.next_id}"
    _write_foreign(local(folder), table.metadata.current_schema, rows)
    await run_frazil(run.harness, "table", "add-files", run.name, folder)
    run.model.main |= rows


def _write_foreign(folder: str, schema: Schema, rows: Rows) -> None:
    Path(folder).mkdir(parents=True)
    for id, row in rows.items():
        values = {
            field.name: id if field.field_id == 1 else value_of(row, field.field_id)
            for field in schema.fields
        }
        table = pa.Table.from_pylist([values], schema=arrow_schema(schema))
        pq.write_table(table, f"{folder}/row-{id}.parquet")


# --- Two tables ----------------------------------------------------------------------------------


async def frazil_transaction(run: Run) -> None:
    """Move some rows to the other table: both change, or neither does."""
    other = run.other
    assert other is not None
    ids = await run.live_ids()
    moved: Rows = {each: run.model.main[each][:2] for each in ids}
    parts = [await run.changer.delete_rows(ids), await other.changer.append(moved)]
    tables = [await one.harness.load(one.name) for one in (run, other)]
    named = build_transaction(tables)
    deleted, added = (replace(one, transaction=named) for one in parts)
    await asyncio.gather(
        run.land(deleted, run.model.without(ids)),
        other.land(added, {**other.model.main, **moved}),
    )
