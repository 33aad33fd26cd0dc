"""Partition specs evolve as those of Iceberg Java do, and keep the ids of their fields."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from committer.errors import InvalidMetadataError, UnsupportedError
from committer.iceberg.evolution.partition_evolution import PartitionSpecUpdate
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.schema.partition_spec import (
    PartitionField,
    PartitionSpec,
    print_partition_spec,
)
from committer.iceberg.schema.schema import Schema, print_schema
from committer.iceberg.updates.metadata_update import (
    LAST_ADDED,
    AddPartitionSpec,
    SetDefaultPartitionSpec,
    UpgradeFormatVersion,
    apply_updates,
)
from committer.iceberg.values.transforms import (
    IDENTITY,
    VOID,
    YEAR,
    Transform,
    parse_transform,
)
from committer.iceberg.values.types import (
    FixedType,
    ListType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
)
from tests.support.iceberg.metadata_builders import START_MS, build_table

SCHEMA = Schema(
    (
        NestedField(1, "id", LongType(), True),
        NestedField(2, "ts", TimestampType(), False),
        NestedField(3, "s", StringType(), False),
        NestedField(4, "place", StructType((NestedField(6, "x", LongType(), False),)), False),
        NestedField(5, "list", ListType(7, LongType(), False), False),
    )
)
CODES = Schema((*SCHEMA.fields, NestedField(8, "code", FixedType(4), False)))
BUCKET = parse_transform("bucket[16]")
Change = Callable[[PartitionSpecUpdate], object]


def update_of(table: TableMetadata) -> PartitionSpecUpdate:
    return PartitionSpecUpdate(
        table.default_spec,
        table.current_schema,
        specs=table.partition_specs,
        last_partition_id=table.last_partition_id,
        format_version=table.format_version,
    )


def with_spec(table: TableMetadata, spec: PartitionSpec) -> TableMetadata:
    updates = (AddPartitionSpec(spec), SetDefaultPartitionSpec(LAST_ADDED))
    return apply_updates(table, updates, base_location=None, now_ms=START_MS)


def evolve(table: TableMetadata, *changes: Change) -> TableMetadata:
    """Return the table after one update with these changes."""
    update = update_of(table)
    for change in changes:
        change(update)
    evolved = update.apply()
    changed = with_spec(table, evolved.spec)
    assert changed.last_partition_id == evolved.last_partition_id
    return changed


def add(source: str, transform: str = "identity", name: str | None = None) -> Change:
    return lambda update: update.add_field(source, parse_transform(transform), name)


def remove(name: str) -> Change:
    return lambda update: update.remove_field(name)


def rename(name: str, new_name: str) -> Change:
    return lambda update: update.rename_field(name, new_name)


def fields_of(table: TableMetadata) -> list[tuple[int, str, str]]:
    return [
        (field.field_id, field.name, str(field.transform)) for field in table.default_spec.fields
    ]


def test_fields_without_a_name_are_named_as_the_reference_names_them() -> None:
    table = evolve(
        build_table(schema=SCHEMA),
        add("id"),
        add("id", "bucket[16]"),
        add("s", "truncate[4]"),
        add("ts", "hour"),
        add("place.x", "void"),
    )
    assert fields_of(table) == [
        (1000, "id", "identity"),
        (1001, "id_bucket_16", "bucket[16]"),
        (1002, "s_trunc_4", "truncate[4]"),
        (1003, "ts_hour", "hour"),
        (1004, "place.x_null", "void"),
    ]


def test_removed_field_goes_and_gets_its_id_again_when_it_comes_back() -> None:
    table = evolve(build_table(schema=SCHEMA), add("ts", "day"), add("id", "bucket[16]"))
    table = evolve(table, remove("ts_day"))
    assert fields_of(table) == [(1001, "id_bucket_16", "bucket[16]")]
    table = evolve(table, add("ts", "hour"), add("s"))
    assert fields_of(table)[1:] == [(1002, "ts_hour", "hour"), (1003, "s", "identity")]
    table = evolve(table, remove("ts_hour"), add("ts", "day"))
    assert fields_of(table)[-1] == (1000, "ts_day", "day")
    assert table.last_partition_id == 1003


def test_field_that_comes_back_under_another_name_is_a_new_one() -> None:
    table = evolve(build_table(schema=SCHEMA), add("ts", "day"))
    table = evolve(evolve(table, remove("ts_day")), add("ts", "day", "on"))
    assert fields_of(table) == [(1001, "on", "day")]
    table = evolve(evolve(table, remove("on")), add("ts", "day"))
    assert fields_of(table) == [(1001, "on", "day")]


def test_removed_field_of_version_1_stays_as_void_and_gives_way_to_its_name() -> None:
    table = build_table(schema=SCHEMA, format_version=1)
    table = evolve(table, add("ts", "day", "p"), add("id", "bucket[16]"))
    table = evolve(table, remove("p"))
    assert fields_of(table) == [(1000, "p", "void"), (1001, "id_bucket_16", "bucket[16]")]
    table = evolve(table, add("ts", "hour", "p"))
    assert fields_of(table) == [
        (1000, "p_1000", "void"),
        (1001, "id_bucket_16", "bucket[16]"),
        (1002, "p", "hour"),
    ]
    table = evolve(table, remove("id_bucket_16"), add("ts", "day"))
    assert fields_of(table)[1:] == [
        (1001, "id_bucket_16", "void"),
        (1002, "p", "hour"),
        (1003, "ts_day", "day"),
    ]


def test_field_that_is_removed_and_added_in_one_update_stays() -> None:
    for format_version in (1, 2):
        table = build_table(schema=SCHEMA, format_version=format_version)
        table = evolve(table, add("ts", "day"))
        assert evolve(table, remove("ts_day"), add("ts", "day")) == table
        renamed = evolve(table, remove("ts_day"), add("ts", "day", "on"))
        assert fields_of(renamed) == [(1000, "on", "day")]


def test_name_of_a_field_that_is_removed_in_the_same_update_is_free() -> None:
    for format_version, kept in ((1, [(1000, "p_1000", "void")]), (2, [])):
        table = build_table(schema=SCHEMA, format_version=format_version)
        table = evolve(table, add("ts", "day", "p"))
        table = evolve(table, remove("p"), add("ts", "hour", "p"))
        assert fields_of(table) == [*kept, (1001, "p", "hour")]


def test_field_is_renamed_and_removed_by_its_new_name() -> None:
    table = evolve(build_table(schema=SCHEMA), add("ts", "day"), add("id", "bucket[16]"))
    table = evolve(table, rename("ts_day", "on"))
    assert fields_of(table)[0] == (1000, "on", "day")
    table = evolve(table, remove("on"))
    assert fields_of(table) == [(1001, "id_bucket_16", "bucket[16]")]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ((add("nothing"),), "expected a column `nothing`"),
        ((add("ts", "day"),), "in the spec already"),
        ((add("id"), add("id")), "in the spec already"),
        ((add("id", "identity", "ts_day"),), "`ts_day` is in the spec already"),
        ((add("id", "identity", "p"), add("s", "identity", "p")), "`p` is added already"),
        ((add("ts", "hour"), add("ts", "year")), "divide the same time"),
        ((add("id", "bucket[4]", "s"),), "another column than its source"),
        ((add("place"),), "cannot take"),
        ((add("list.element"),), "list"),
        ((add("s", "hour"),), "cannot take"),
        ((remove("nothing"),), "expected a partition field `nothing`"),
        ((add("id"), remove("id")), "expected a partition field `id`"),
        ((add("id"), rename("id", "x")), "expected a partition field `id`"),
        ((remove("ts_day"), rename("ts_day", "x")), "removed and renamed"),
        ((rename("ts_day", "x"), remove("ts_day")), "renamed and removed"),
        ((rename("ts_day", ""),), "expected a name"),
        ((add("id"), rename("ts_day", "id")), "another column|each once"),
    ],
)
def test_change_that_the_rules_forbid_is_refused(changes: tuple[Change, ...], message: str) -> None:
    table = evolve(build_table(schema=SCHEMA), add("ts", "day"))
    with pytest.raises(InvalidMetadataError, match=message):
        evolve(table, *changes)


def test_spec_with_a_transform_that_is_not_known_does_not_evolve() -> None:
    unknown = PartitionSpec(0, (PartitionField((1, 2), 1000, "z", parse_transform("zorder")),))
    with pytest.raises(UnsupportedError, match="zorder"):
        PartitionSpecUpdate(
            unknown, SCHEMA, specs=(unknown,), last_partition_id=1000, format_version=3
        )
    with pytest.raises(UnsupportedError, match="zorder"):
        evolve(build_table(schema=SCHEMA), add("id", "zorder"))


def test_void_field_of_a_dropped_column_does_not_keep_a_spec_from_changing() -> None:
    spec = PartitionSpec(0, (PartitionField((99,), 1000, "id", VOID),))
    update = PartitionSpecUpdate(
        spec, SCHEMA, specs=(spec,), last_partition_id=1000, format_version=1
    )
    evolved = update.add_field("ts", YEAR).apply()
    assert [field.name for field in evolved.spec.fields] == ["id", "ts_year"]


# --- Random evolutions ---------------------------------------------------------------------------

TRANSFORMS: dict[str, tuple[str, ...]] = {
    "id": ("identity", "bucket[4]", "bucket[16]", "truncate[10]", "void"),
    "ts": ("identity", "year", "month", "day", "hour", "bucket[4]"),
    "s": ("identity", "truncate[2]", "bucket[8]"),
    "place.x": ("identity", "bucket[4]"),
}
TERMS = [(source, text) for source, texts in TRANSFORMS.items() for text in texts]
Step = tuple[str, int, str | None]


def updates() -> st.SearchStrategy[list[list[Step]]]:
    step = st.tuples(
        st.sampled_from(("add", "add", "remove", "rename")),
        st.integers(0, 30),
        st.sampled_from((None, None, "p", "q")),
    )
    return st.lists(st.lists(step, min_size=1, max_size=3), min_size=1, max_size=5)


def perform(update: Any, spec: PartitionSpec, step: Step) -> None:
    kind, number, name = step
    if kind == "add":
        source, text = TERMS[number % len(TERMS)]
        update.add_field(source, text if hasattr(update, "_adds") else parse_transform(text), name)
    elif spec.fields:
        field = spec.fields[number % len(spec.fields)].name
        if kind == "remove":
            update.remove_field(field)
        else:
            update.rename_field(field, name or "r")


@settings(max_examples=80, deadline=None)
@given(format_version=st.sampled_from((1, 2, 3)), updates=updates())
def test_ids_of_fields_mean_one_thing_over_all_specs(
    format_version: int, updates: list[list[Step]]
) -> None:
    table = build_table(schema=SCHEMA, format_version=format_version)
    for steps in updates:
        base = table
        try:
            update = update_of(base)
            for step in steps:
                perform(update, base.default_spec, step)
            table = with_spec(base, update.apply().spec)
        except InvalidMetadataError:
            continue
        if format_version == 1:
            check_positions(base.default_spec, table.default_spec)
    meanings: dict[int, set[tuple[int, Transform]]] = {}
    for field in (field for spec in table.partition_specs for field in spec.fields):
        assert field.field_id <= table.last_partition_id
        if field.transform != VOID or format_version > 1:
            meanings.setdefault(field.field_id, set()).add((field.source_id, field.transform))
    assert all(len(each) == 1 for each in meanings.values())


def check_positions(before: PartitionSpec, after: PartitionSpec) -> None:
    """Check the rules that readers of version 1 rely on."""
    kept = after.fields[: len(before.fields)]
    assert [field.field_id for field in kept] == [field.field_id for field in before.fields]
    assert [field.field_id for field in after.fields] == [
        1000 + position for position in range(len(after.fields))
    ]
    for old, new in zip(before.fields, kept, strict=True):
        assert new.source_id == old.source_id
        assert new.transform in (old.transform, VOID)


@pytest.mark.thorough
@settings(max_examples=80, deadline=None)
@given(updates=updates())
def test_specs_evolve_as_those_of_pyiceberg(updates: list[list[Step]]) -> None:
    table, has_renamed = build_table(schema=SCHEMA), False
    for steps in updates:
        ours, theirs = update_of(table), their_update(table)
        spec = table.default_spec
        try:
            for step in steps:
                perform(ours, spec, step)
            evolved = ours.apply()
            for step in steps:
                perform(theirs, spec, step)
            found = theirs._apply()
        except (InvalidMetadataError, ValueError):
            return
        kinds = {kind for kind, _, _ in steps}
        has_renamed = has_renamed or "rename" in kinds
        # PyIceberg puts a field that is removed and added again in one update at the end.
        if not {"add", "remove"} <= kinds:
            printed = print_partition_spec(evolved.spec)["fields"]
            expected = json.loads(found.model_dump_json())["fields"]
            if has_renamed:  # of a field that comes back, which of the names it has had is free
                expected, printed = map(without_names, (expected, printed))
            assert expected == printed
        table = with_spec(table, evolved.spec)


def without_names(fields: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in field.items() if key != "name"} for field in fields]


def their_update(table: TableMetadata) -> Any:
    from pyiceberg.partitioning import PartitionSpec as TheirSpec
    from pyiceberg.schema import Schema as TheirSchema
    from pyiceberg.table.update.spec import UpdateSpec

    specs = {
        spec.spec_id: TheirSpec.model_validate_json(json.dumps(print_partition_spec(spec)))
        for spec in table.partition_specs
    }
    schema = TheirSchema.model_validate_json(json.dumps(print_schema(table.current_schema)))
    metadata = SimpleNamespace(
        spec=lambda: specs[table.default_spec_id],
        specs=lambda: specs,
        schema=lambda: schema,
        last_partition_id=table.last_partition_id,
        format_version=table.format_version,
        default_spec_id=table.default_spec_id,
    )
    return UpdateSpec(SimpleNamespace(table_metadata=metadata))


def test_a_field_that_version_1_dropped_comes_back_beside_its_void_under_a_new_id() -> None:
    """The void one holds the id that it had; both in one spec would have none of their own."""
    table = evolve(build_table(format_version=1, schema=SCHEMA), lambda u: u.add_field("id"))
    table = evolve(table, lambda u: u.remove_field("id"))
    table = apply_updates(table, [UpgradeFormatVersion(2)], base_location=None, now_ms=START_MS)
    back = evolve(table, lambda u: u.add_field("id")).default_spec
    assert [(each.field_id, each.name, str(each.transform)) for each in back.fields] == [
        (1000, "id_1000", "void"),
        (1001, "id", "identity"),
    ]
    instead = evolve(table, lambda u: u.remove_field("id"), lambda u: u.add_field("id"))
    assert [each.field_id for each in instead.default_spec.fields] == [1000]


def test_a_spec_with_fixed_values_is_not_made_and_may_be_left() -> None:
    for format_version in (1, 2):
        table = build_table(format_version=format_version, schema=CODES)
        column = table.current_schema.fields[-1]
        by_code = PartitionSpec(0, (PartitionField((column.field_id,), 1000, "code", IDENTITY),))
        with pytest.raises(UnsupportedError, match="`code`: identity of a fixed column"):
            update_of(table).add_field("code").apply()
        with pytest.raises(UnsupportedError, match="`code`: identity of a fixed column"):
            apply_updates(table, [AddPartitionSpec(by_code)], base_location=None, now_ms=START_MS)
        # Iceberg Java has made it.
        foreign = replace(table, partition_specs=(by_code,), last_partition_id=1000)
        with pytest.raises(UnsupportedError, match="`code`: identity of a fixed column"):
            update_of(foreign).add_field("id", BUCKET).apply()
        left = update_of(foreign).remove_field("code").add_field("code", BUCKET).apply()
        assert [str(field.transform) for field in left.spec.fields][-1:] == ["bucket[16]"]
