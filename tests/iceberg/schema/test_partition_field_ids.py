"""The ids of partition fields: given by the table, kept for what means the same."""

from __future__ import annotations

import pytest

from committer.errors import InvalidMetadataError
from committer.iceberg.schema.partition_field_ids import (
    NEW_FIELD_ID,
    with_field_ids,
    with_field_ids_by_position,
)
from committer.iceberg.schema.partition_spec import PartitionField, PartitionSpec
from committer.iceberg.values.transforms import parse_transform


def build_spec(*fields: tuple[int, str, int], names: str = "abcdef") -> PartitionSpec:
    """Build a spec of (source id, transform, field id)."""
    return PartitionSpec(
        0,
        tuple(
            PartitionField((source_id,), field_id, name, parse_transform(transform))
            for (source_id, transform, field_id), name in zip(fields, names, strict=False)
        ),
    )


KNOWN = (build_spec((1, "identity", 1000), (2, "bucket[4]", 1001)), build_spec((3, "day", 1004)))


def ids(spec: PartitionSpec) -> list[int]:
    return [field.field_id for field in with_field_ids(spec, KNOWN, 1004).fields]


def test_an_equivalent_field_of_any_spec_gives_its_id_whatever_its_name() -> None:
    spec = build_spec((3, "day", NEW_FIELD_ID), (1, "identity", NEW_FIELD_ID), names="xy")
    assert ids(spec) == [1004, 1000]


def test_new_fields_are_numbered_behind_all_that_were_given() -> None:
    spec = build_spec((1, "bucket[4]", NEW_FIELD_ID), (9, "day", 1010), (2, "day", NEW_FIELD_ID))
    assert ids(spec) == [1005, 1010, 1011]


def test_ids_that_are_there_stay() -> None:
    spec = build_spec((2, "bucket[4]", 1001), (5, "identity", 1005))
    assert with_field_ids(spec, KNOWN, 1004) is not spec
    assert with_field_ids(spec, KNOWN, 1004) == spec


def test_a_dropped_field_keeps_the_id_of_what_it_was() -> None:
    assert ids(build_spec((1, "void", 1000), (2, "void", 1001))) == [1000, 1001]


def test_an_id_that_the_spec_has_already_is_not_given_again() -> None:
    """A void field of before an upgrade holds the id; so may what comes later in the spec."""
    assert ids(build_spec((1, "void", 1000), (1, "identity", NEW_FIELD_ID))) == [1000, 1005]
    assert ids(build_spec((4, "day", NEW_FIELD_ID), (5, "day", 1005))) == [1006, 1005]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (build_spec((2, "identity", 1000)), "field `a`: id 1000 is another field's"),
        (build_spec((5, "day", 1005), (6, "day", 1005)), "expected each field id once"),
    ],
)
def test_an_id_means_one_thing(spec: PartitionSpec, message: str) -> None:
    with pytest.raises(InvalidMetadataError, match=message):
        with_field_ids(spec, KNOWN, 1004)


def test_an_id_that_old_specs_gave_to_two_fields_may_stay_with_each() -> None:
    known = (build_spec((1, "identity", 1000)), build_spec((2, "identity", 1000)))
    for source_id in (1, 2):
        spec = build_spec((source_id, "identity", 1000), (3, "day", NEW_FIELD_ID))
        assert [field.field_id for field in with_field_ids(spec, known, 1000).fields] == [
            1000,
            1001,
        ]


def test_version_1_numbers_by_position() -> None:
    spec = build_spec((1, "identity", NEW_FIELD_ID), (2, "day", 1001))
    assert [field.field_id for field in with_field_ids_by_position(spec).fields] == [1000, 1001]
    with pytest.raises(InvalidMetadataError, match=r"\[1000, 1001\] in format version 1, found"):
        with_field_ids_by_position(build_spec((1, "identity", 1000), (2, "day", 1002)))
