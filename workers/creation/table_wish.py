"""A table as a user of Spark asks for it, checked and turned into what a catalog creates.

Values only: no catalog is asked.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import StructType

from committer.creation.create_table import NewTable
from committer.errors import SettingsError, UnsupportedError
from committer.iceberg.metadata.metadata_check import RESERVED_PROPERTIES
from committer.iceberg.schema.partition_spec import UNPARTITIONED
from committer.iceberg.schema.sort_order import UNSORTED
from committer.iceberg.schema.table_text import parse_partition, parse_sort_order
from committer.ledger_entry import LEDGER_PREFIX
from committer.request.table_identifier import TableIdentifier
from workers.creation.spark_types import refuse_untyped, schema_of
from workers.settings.create_options import CreateOptions

# As engines name it among a table's properties; it is stored as a field of the metadata.
_FORMAT_VERSION = "format-version"
_FORMAT_VERSION_USUAL = 2
_FORMAT_VERSIONS = ("1", "2", "3")


def new_table(
    identifier: TableIdentifier, source: StructType, wish: CreateOptions, *, all_optional: bool
) -> NewTable:
    """Return the table to create for such rows. `all_optional`: as `schema_of`.

    Errors: `SettingsError` naming what is wrong.
    """
    _check_properties(wish.properties)
    try:
        schema = schema_of(source, all_optional=all_optional)
        if not schema.fields:
            raise ValueError("a table needs a column, and the schema has none")
        version = _format_version(wish)
        refuse_untyped(schema, version)
        partitions, order = wish.partition_by, wish.sort_by
        return NewTable(
            identifier=identifier,
            schema=schema,
            partition_spec=parse_partition(partitions, schema) if partitions else UNPARTITIONED,
            sort_order=parse_sort_order(order, schema) if order else UNSORTED,
            properties={
                name: text for name, text in wish.properties.items() if name != _FORMAT_VERSION
            },
            format_version=version,
            location=wish.location,
        )
    except (ValueError, UnsupportedError) as error:
        raise SettingsError(f"table `{identifier}` cannot be created: {error}") from None


def _check_properties(properties: Mapping[str, str]) -> None:
    for name in properties:
        if name.startswith(LEDGER_PREFIX):
            raise SettingsError(f"property `{name}` belongs to the ledger of what has landed")
        if name in RESERVED_PROPERTIES and name != _FORMAT_VERSION:
            raise SettingsError(f"property `{name}` is reserved: engines tell it of the table")


def _format_version(wish: CreateOptions) -> int:
    named = wish.properties.get(_FORMAT_VERSION)
    given = {str(one) for one in (wish.format_version, named) if one is not None}
    if len(given) > 1 or not given <= set(_FORMAT_VERSIONS):
        raise ValueError(
            f"format version {' and '.join(sorted(given))}: expected one of"
            f" {', '.join(_FORMAT_VERSIONS)}"
        )
    return int(*given) if given else _FORMAT_VERSION_USUAL
