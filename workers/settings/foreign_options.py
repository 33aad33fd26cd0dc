"""Options that users of Delta Lake and of Iceberg's own runtime type, and what does their work.

Some mean the same as an option of ours, and are taken for it; the others are refused by the name
of what does their work. Nothing is looked up.
"""

from __future__ import annotations

from collections.abc import Mapping

from committer.errors import SettingsError

# By the name as it is typed there.
_SAME_IN_WRITES = {"partitionOverwriteMode": "overwrite-mode"}
_SAME_IN_READS = {
    "maxFilesPerTrigger": "streaming-max-files-per-micro-batch",
    "ignoreDeletes": "streaming-skip-delete-snapshots",
}
_PROPERTY = (
    "files are shaped by the table's properties: `frazil table set {table} {name}=…`, or"
    ' option("table-property.{name}", …) of a write that creates the table'
)
_DISTRIBUTE = (
    "a data source cannot move rows between tasks: frazil.spark.distribute(rows, table) does,"
    " before the write"
)
_NO_TEXT = "a snapshot keeps no text of its writers; `queryName` is what `frazil status` shows"
_SCHEMA = (
    "an overwrite keeps the schema of the table: change it first (`frazil table evolve`), or let an"
    ' append add columns: option("mergeSchema", "true")'
)
_LEAVE_OUT = "leave it out: {0}"
_ARROW = _LEAVE_OUT.format("rows come in Arrow batches, of a bounded size, anyway")
_SKIP = 'use "streaming-skip-delete-snapshots" and "streaming-skip-overwrite-snapshots"'
_IDEMPOTENT = (
    'use option("producer", …) and option("epoch", …) together: a repeated write lands once'
)
_CHANGES = (
    "there is no feed of changes; `start-snapshot-id` and `end-snapshot-id` read the rows that were"
    " appended in between"
)

_INSTEAD_IN_WRITES = {
    "replaceWhere": 'use mode("overwrite") with option("overwrite-filter", "carrier = \'UA\'")',
    "overwriteSchema": _SCHEMA,
    "txnAppId": _IDEMPOTENT,
    "txnVersion": _IDEMPOTENT,
    "userMetadata": _NO_TEXT,
    "dataChange": "use frazil.spark.rewrite_data_files(table) to compact without new rows",
    "optimizeWrite": _DISTRIBUTE,
    "use-table-distribution-and-ordering": _DISTRIBUTE,
    "advisory-partition-size": f"{_DISTRIBUTE}; `partitions=` says how many tasks write",
    "maxRecordsPerFile": _PROPERTY.format(table="db.t", name="write.target-file-size-bytes"),
    "target-file-size-bytes": _PROPERTY.format(table="db.t", name="write.target-file-size-bytes"),
    "compression-codec": _PROPERTY.format(table="db.t", name="write.parquet.compression-codec"),
    "compression-level": _PROPERTY.format(table="db.t", name="write.parquet.compression-level"),
    "compression-strategy": _PROPERTY.format(table="db.t", name="write.orc.compression-strategy"),
    "fanout-enabled": _LEAVE_OUT.format("rows come in any order, and memory is bounded"),
    "shred-variants": _LEAVE_OUT.format("variants are written whole"),
    "output-spec-id": _LEAVE_OUT.format("new files have the table's current partition spec"),
    "partitionBy": 'use option("create", "true") with option("partition-by", "days(at), carrier")'
    " when the write creates the table; a table that exists knows its partitions",
}
_INSTEAD_IN_READS = {
    "versionAsOf": 'use option("snapshot-id", …) for a snapshot, option("branch", …) or'
    ' option("tag", …) for a name',
    "timestampAsOf": 'use option("as-of", "2026-05-01T12:00:00Z"), which is UTC without a zone, or'
    ' option("as-of-timestamp", …) in ms since 1970',
    "startingVersion": 'use option("starting-snapshot-id", …)',
    "startingTimestamp": 'use option("stream-from-timestamp", …) in ms since 1970',
    "endingVersion": _CHANGES,
    "endingTimestamp": _CHANGES,
    "start-timestamp": _CHANGES,
    "end-timestamp": _CHANGES,
    "readChangeFeed": _CHANGES,
    "ignoreChanges": _SKIP,
    "skipChangeCommits": _SKIP,
    "maxBytesPerTrigger": 'use option("streaming-max-rows-per-micro-batch", …), or limit the files',
    "vectorization-enabled": _ARROW,
    "batch-size": _ARROW,
    "locality": _LEAVE_OUT.format("a data source in Python cannot choose the machine of a task"),
    "aggregate-push-down-enabled": _LEAVE_OUT.format("Spark tells a Python source no aggregates"),
    "mergeSchema": _LEAVE_OUT.format("rows are read with the schema of the table, whole"),
}
_TEXT_PREFIX = "snapshot-property."


def with_own_names(options: Mapping[str, str], *, is_read: bool) -> dict[str, str]:
    """Return the options, which have names in lower case, with ours in place of those that mean the
    same.

    Errors: `SettingsError` where both are there and differ, and for an option that only others
    have, with what does its work here.
    """
    named = dict(options)
    for name, own in (_SAME_IN_READS if is_read else _SAME_IN_WRITES).items():
        value = named.pop(name.lower(), None)
        if value is not None and named.setdefault(own, value) != value:
            raise SettingsError(
                f"options `{name}` and `{own}` mean the same here: found `{value}` and"
                f" `{named[own]}`, expected one of them"
            )
    for name, instead in (_INSTEAD_IN_READS if is_read else _INSTEAD_IN_WRITES).items():
        if name.lower() in named:
            raise SettingsError(f"option `{name}`: {instead}")
    texts = [name for name in named if name.startswith(_TEXT_PREFIX) and not is_read]
    if texts:
        raise SettingsError(f"option `{texts[0]}`: {_NO_TEXT}")
    return named
