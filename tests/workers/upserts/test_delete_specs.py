from __future__ import annotations

import pytest

from committer.errors import PublishError
from committer.iceberg.schema.partition_spec import PartitionField, PartitionSpec
from committer.iceberg.values.transforms import parse_transform
from committer.iceberg.values.types import LongType, StringType
from tests.support.workers.tables import optional, schema
from workers.upserts.delete_specs import delete_specs

TABLE = schema(
    optional(1, "id", LongType()), optional(2, "region", StringType()), optional(3, "x", LongType())
)


def spec(spec_id: int, **fields: str) -> PartitionSpec:
    sources = {field.name: field.field_id for field in TABLE.fields}
    return PartitionSpec(
        spec_id,
        tuple(
            PartitionField((sources[name],), 1000 + at, f"{name}_{at}", parse_transform(text))
            for at, (name, text) in enumerate(fields.items())
        ),
    )


def test_each_spec_has_the_deletes_as_old_rows_may_be_in_files_of_any() -> None:
    specs = (spec(0, id="bucket[4]"), spec(1, id="bucket[8]", region="identity"))
    assert delete_specs(specs, TABLE, (1, 2)) == specs


def test_an_unpartitioned_spec_reaches_the_files_of_all_others() -> None:
    old = spec(0)
    assert delete_specs((old, spec(1, region="identity")), TABLE, (1,)) == (old,)
    # A table of format version 1 keeps a dropped field.
    void = spec(1, region="void")
    assert delete_specs((spec(0, region="identity"), void), TABLE, (1,)) == (void,)


def test_a_dropped_field_depends_on_nothing() -> None:
    specs = (spec(0, id="bucket[4]", region="void"),)
    assert delete_specs(specs, TABLE, (1,)) == specs


def test_a_partition_of_more_than_the_key_is_refused() -> None:
    specs = (spec(0, id="identity"), spec(1, id="identity", region="truncate[1]", x="identity"))
    with pytest.raises(PublishError, match="spec 1 of the table partitions by `region`, `x`"):
        delete_specs(specs, TABLE, (1,))
    with pytest.raises(PublishError, match="partitions by `x`"):
        delete_specs(specs, TABLE, (1, 2))
