"""The call that distributes rows to the tasks that write them, as Iceberg's Spark does it.

A Python data source cannot ask Spark for a distribution of the rows that it writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from committer.errors import SettingsError

_KEY = "_frazil_key_"

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from committer.iceberg.metadata.table_metadata import TableMetadata
    from workers.distribution.distribution_mode import DistributionMode


def distribute(
    dataframe: DataFrame,
    table: str,
    *,
    mode: str | None = None,
    partitions: int | None = None,
    **options: str,
) -> DataFrame:
    """Return the rows distributed as a write to the table shall have them: write the result.

    `mode`: `hash` brings the rows of a partition to one task, so that few files are made; `range`
    deals them by partition and sort order to tasks of about equal size, so that files have narrow
    bounds; `none` leaves them. Without one, the table's `write.distribution-mode`, else `range` for
    a sorted table and `hash` for a partitioned one, as in Iceberg. Where the table has a sort order
    each task's rows are in it; of a streaming DataFrame the writer sorts each row group instead.
    `partitions`: how many tasks write, Spark's own choice without. `options`: the settings of
    `format("frazil")`. Errors: `SettingsError`, those of reading the table; `UnsupportedError` for
    a transform that this version does not know.
    """
    from workers.branches.branch_state import load_metadata
    from workers.distribution.distribution_mode import mode_of
    from workers.settings.option_values import refuse_unknown, table_name

    given = None if mode is None else mode_of(mode, "distribute: `mode`")
    if partitions is not None and partitions < 1:
        raise SettingsError(f"distribute: `partitions`: expected 1 or more, found {partitions}")
    settings = {name.lower(): str(value) for name, value in options.items()}
    refuse_unknown(settings, (), ())
    metadata = load_metadata(table_name(table), settings)
    return distributed(dataframe, metadata, given, partitions)


def distributed(
    frame: Any,
    metadata: TableMetadata,
    given: DistributionMode | None = None,
    partitions: int | None = None,
) -> Any:
    """Distribute rows as `distribute` says. Errors: `SettingsError`, `UnsupportedError`."""
    from pyspark.sql import functions as F  # noqa: N812  # its usual name

    from workers.distribution.distribution_keys import directed, partition_keys, sort_keys
    from workers.distribution.distribution_mode import marked, wanted_mode

    mode = wanted_mode(metadata, given)
    if mode == "none":
        return marked(frame, mode)
    schema = metadata.current_schema
    partition = partition_keys(metadata.default_spec, schema, frame)
    order = sort_keys(metadata.default_sort_order, schema, frame)
    # Computed once, however often they are compared.
    names = [f"{_KEY}{at}" for at in range(len(partition) + len(order))]
    keys = (*partition, *(key for key, _ in order))
    keyed = frame.withColumns(dict(zip(names, keys, strict=True))) if names else frame
    by_partition, by_order = names[: len(partition)], names[len(partition) :]
    in_order = [directed(F.col(n), field) for n, (_, field) in zip(by_order, order, strict=True)]
    number = () if partitions is None else (partitions,)
    if mode == "range" and names:
        keyed = keyed.repartitionByRange(*number, *by_partition, *in_order)
    elif by_partition and (number or frame.isStreaming):
        keyed = keyed.repartition(*number, *by_partition)
    elif by_partition:
        # Spark may join small partitions, and split one that is far larger than the others.
        keyed = keyed.hint("rebalance", *by_partition)
    if in_order and not frame.isStreaming:
        keyed = keyed.sortWithinPartitions(*by_partition, *in_order)
    return marked(keyed.drop(*names), mode)
