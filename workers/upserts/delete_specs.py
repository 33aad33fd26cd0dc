"""Under which partition specs equality deletes are written, so that they reach every old row.

An equality delete under a partitioned spec applies to data files of that spec and partition alone;
under an unpartitioned one, to all. Source: the specification, "Scan Planning".
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from committer.errors import PublishError
from committer.iceberg.schema.partition_spec import PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.transforms import VoidTransform


def delete_specs(
    specs: Sequence[PartitionSpec], schema: Schema, key_ids: Collection[int]
) -> tuple[PartitionSpec, ...]:
    """Return the specs: an unpartitioned one alone if the table has or had one; else each that it
    has, as the old row of a key may be in a file of any. `key_ids`: field ids of the keys.

    Errors: `PublishError` where a partition may depend on more than the key.
    """
    for spec in specs:
        if spec.is_unpartitioned:
            return (spec,)
    for spec in specs:
        if outside := _sources(spec) - frozenset(key_ids):
            raise PublishError(_undecided(spec, schema, sorted(outside)))
    return tuple(specs)


def _sources(spec: PartitionSpec) -> frozenset[int]:
    """Return the columns that a row's partition depends on."""
    return frozenset(
        source
        for field in spec.fields
        if not isinstance(field.transform, VoidTransform)
        for source in field.source_ids
    )


def _undecided(spec: PartitionSpec, schema: Schema, outside: Sequence[int]) -> str:
    names = ", ".join(f"`{schema.column_name(one) or one}`" for one in outside)
    return (
        f"partition spec {spec.spec_id} of the table partitions by {names}, which `upsert-keys`"
        " does not have: the old row of a key may be in another partition, which an equality delete"
        " does not reach. Add the column to `upsert-keys` if it never changes for a key, or"
        " partition the table by columns of the key only"
    )
