"""The table of a write as its options want it: made if it is not there, with the branch, widened.

Called on the driver, before the tasks.
"""

from __future__ import annotations

from pyspark.sql.types import StructType

from committer.errors import NotFoundError, PublishError
from committer.iceberg.metadata.snapshot import MAIN
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.request.table_identifier import TableIdentifier
from workers.creation.ensured_table import ensure_table
from workers.creation.table_wish import TableWish, new_table
from workers.requests.blocking_publisher import BlockingPublisher
from workers.settings.create_options import CreateOptions
from workers.settings.options import WriteOptions
from workers.settings.worker_settings import WorkerSettings


def wanted_table(
    publisher: BlockingPublisher,
    options: WriteOptions,
    settings: WorkerSettings,
    schema: StructType,
) -> TableMetadata:
    """Load the table, or create it for such rows if the options say so.

    Errors: `PublishError` without the table or the branch; those of `ensure_table`.
    """
    identifier = TableIdentifier.parse(options.table)
    try:
        metadata = publisher.load_table(identifier).metadata
    except NotFoundError as error:
        if options.create is None:
            raise PublishError(
                f"{error}: catalog `{settings.catalog.name}` has no table `{options.table}`; create"
                " it first (frazil.spark.create_table, `frazil table create`, or any Iceberg engine"
                ' on that catalog), or with the write: option("create", "true")'
            ) from None
        new = new_table(identifier, schema, _wish(options.create), all_optional=True)
        metadata = ensure_table(publisher, new)[0].metadata
    _check_branch(identifier, metadata, options.branch)
    return metadata


def _wish(create: CreateOptions) -> TableWish:
    return TableWish(
        partition_by=[create.partition_by] if create.partition_by else [],
        sort_by=[create.sort_by] if create.sort_by else [],
        properties=create.properties,
        location=create.location,
    )


def _check_branch(identifier: TableIdentifier, metadata: TableMetadata, branch: str) -> None:
    ref = metadata.refs.get(branch)
    if branch != MAIN and (ref is None or ref.type != "branch"):
        raise PublishError(
            f"table `{identifier}` has no branch `{branch}`: create it first"
            f" (`frazil table branch create {identifier} {branch}`)"
        )
