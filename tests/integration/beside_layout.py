"""Steps that change columns, partitions, sort order and properties, and that replace partitions."""

from __future__ import annotations

from collections.abc import Mapping

from committer.iceberg.values.transforms import parse_transform
from committer.iceberg.values.types import LongType
from tests.integration.beside_run import Run
from tests.integration.changing_state import Row
from tests.integration.table_orders import Orders

_BUCKET, _TRANSFORM = "id_bucket", parse_transform("bucket[2]")


async def frazil_add_column(run: Run) -> None:
    kind = run.model.chance.choice(("string", "int"))
    await _add_column(run, kind)


async def _add_column(run: Run, kind: str) -> int:
    columns = run.model.columns
    name = f"added_{columns.last_id + 1}"
    await _alter(run, {"action": "add-column", "name": name, "type": kind})
    columns.add(name, kind)
    return columns.last_id


async def frazil_widen_column(run: Run) -> None:
    columns = run.model.columns
    narrow = [each for each in columns.added if columns.types[each] == "int"]
    if not narrow:
        narrow = [await _add_column(run, "int")]
        await run.frazil_append()
    field_id = run.model.chance.choice(narrow)
    change = {"action": "update-column-type", "name": columns.names[field_id], "type": "long"}
    await _alter(run, change)
    columns.types[field_id] = "long"
    await run.frazil_append()


async def frazil_rename_column(run: Run) -> None:
    columns, field_id = run.model.columns, await _added(run)
    name = f"{columns.names[field_id]}_again"
    change = {"action": "rename-column", "name": columns.names[field_id], "new-name": name}
    await _alter(run, change)
    columns.names[field_id] = name


async def frazil_drop_column(run: Run) -> None:
    columns, field_id = run.model.columns, await _added(run)
    await _alter(run, {"action": "drop-column", "name": columns.names[field_id]})
    del columns.names[field_id]


async def frazil_move_column(run: Run) -> None:
    columns, field_id = run.model.columns, await _added(run)
    others = [name for each, name in columns.names.items() if each != field_id]
    at = run.model.chance.randrange(len(others) + 1)
    place = {"after": others[at - 1]} if at else {"first": True}
    await _alter(run, {"action": "move-column", "name": columns.names[field_id], **place})
    columns.move(field_id, at)


async def _added(run: Run) -> int:
    """Return a column that was added, with values."""
    if not run.model.columns.added:
        await _add_column(run, "string")
        await run.frazil_append()
    return run.model.chance.choice(run.model.columns.added)


async def frazil_alter_spec(run: Run) -> None:
    """Partition new files by the id too, or no more: files of several specs are live then."""
    add = {"action": "add-partition-field", "source": "id", "transform": str(_TRANSFORM)}
    remove = {"action": "remove-partition-field", "name": _BUCKET}
    is_bucketed = await _is_bucketed(run)
    await _alter(run, remove if is_bucketed else {**add, "name": _BUCKET})
    assert await _is_bucketed(run) is not is_bucketed


async def frazil_replace_partitions(run: Run) -> None:
    """Replace the partitions of some rows by them, which are those of the default spec."""
    is_bucketed = await _is_bucketed(run)
    if is_bucketed:
        # A file of a spec without the id has rows of both buckets, and is not removed for one.
        await run.java_rewrite()
    rows = run.model.new_rows(await run.live_region())
    replaced = {_partition(id, row, is_bucketed) for id, row in rows.items()}
    main = run.model.main.items()
    kept = {id: row for id, row in main if _partition(id, row, is_bucketed) not in replaced}
    await run.land(await run.changer.replace_partitions(rows), {**kept, **rows})


def _partition(id: int, row: Row, is_bucketed: bool) -> tuple[object, ...]:
    return (row[0], _TRANSFORM.apply(LongType(), id)) if is_bucketed else (row[0],)


async def _is_bucketed(run: Run) -> bool:
    spec = (await run.harness.load(run.name)).metadata.default_spec
    return _BUCKET in {field.name for field in spec.fields}


async def frazil_alter_sort_order(run: Run) -> None:
    field = {"source": "text", "direction": run.model.chance.choice(("asc", "desc"))}
    await _alter(run, {"action": "replace-sort-order", "fields": [field]})
    order = (await run.harness.load(run.name)).metadata.default_sort_order
    assert [str(one.direction) for one in order.fields] == [field["direction"]]


async def frazil_set_property(run: Run) -> None:
    text = str(run.model.chance.getrandbits(32))
    await _alter(run, {"action": "set-properties", "updates": {"beside.number": text}})
    assert (await run.harness.load(run.name)).metadata.properties["beside.number"] == text


async def frazil_remove_property(run: Run) -> None:
    await frazil_set_property(run)
    await _alter(run, {"action": "remove-properties", "removals": ["beside.number"]})
    assert "beside.number" not in (await run.harness.load(run.name)).metadata.properties


async def _alter(run: Run, change: Mapping[str, object]) -> None:
    await Orders(run.changer).alter(change)
