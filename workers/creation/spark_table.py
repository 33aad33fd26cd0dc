"""`frazil.spark.create_table`: a table for the rows of a DataFrame, or for a schema of Spark's.

Runs in the program's own process, and asks the catalog only. PySpark is imported where it is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from committer.errors import SettingsError, TableAlreadyExistsError
from committer.extras import named_extra
from committer.request.table_identifier import TableIdentifier
from workers.settings.create_options import CreateOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from committer.ports.pointer_swap import LoadedTable


def create_table(
    source: DataFrame | StructType,
    table: str,
    *,
    partition_by: str | Sequence[str] = (),
    sort_by: str | Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    location: str | None = None,
    format_version: int | None = None,
    exists_ok: bool = False,
    settings: Mapping[str, str] | None = None,
) -> bool:
    """Create `table` with the columns of `source`, and its namespace if there is none. Return
    whether this call has created it.

    Columns of a DataFrame are optional, as in Iceberg's own `CREATE TABLE … AS SELECT`; a schema
    says itself which are required. `partition_by`: `days(ts)`, `bucket(16, id)`,
    `truncate(4, name)`, a column; a name with spaces or commas stands in backticks. `sort_by`:
    `id`, `at desc nulls last`. `format_version`: 2 if neither it nor the property `format-version`
    says another. `exists_ok`: take a table that exists, or that another creates meanwhile, if rows
    of `source` fit it; partitions and properties stay its own. `settings`: options as of a write
    (`catalog.uri`, …), beside those of `configure`.

    Errors: `TableAlreadyExistsError` without `exists_ok`; `PublishError` where it does not fit;
    `SettingsError` naming what is wrong, `UnsupportedError` for what the catalog cannot do.
    """
    with named_extra("frazil.spark.create_table", "spark"):
        wish = CreateOptions(
            _joined("partition_by", partition_by),
            _joined("sort_by", sort_by),
            location or "",
            properties or {},
            format_version,
        )
        return _create(source, _identifier(table), wish, settings or {}, exists_ok=exists_ok)


def _create(
    source: Any,
    identifier: TableIdentifier,
    wish: CreateOptions,
    options: Mapping[str, str],
    *,
    exists_ok: bool,
) -> bool:
    from workers.creation.ensured_table import ensure_table
    from workers.creation.frame_schema import arrow_schema_of, check_fits
    from workers.creation.table_wish import new_table
    from workers.requests.blocking_publisher import borrow_publisher
    from workers.requests.outside_loops import outside_any_loop
    from workers.settings.session_settings import with_session_settings
    from workers.settings.worker_settings import load_settings

    schema, all_optional = _schema(source)
    new = new_table(identifier, schema, wish, all_optional=all_optional)
    arrow_schema = arrow_schema_of(schema)
    settings = load_settings(with_session_settings(options))

    def ensured() -> tuple[LoadedTable, bool]:
        with borrow_publisher(settings) as publisher:
            return ensure_table(publisher, new)

    found, is_new = outside_any_loop(ensured)
    if is_new:
        return True
    if not exists_ok:
        raise TableAlreadyExistsError(
            f"table `{identifier}` exists already in catalog `{settings.catalog.name}`:"
            " exists_ok=True takes it as it is, if the columns fit"
        )
    check_fits(f"table `{identifier}` exists already", arrow_schema, found.metadata.current_schema)
    return False


def _schema(source: Any) -> tuple[StructType, bool]:
    """Return the schema, and whether its columns are optional whatever it says."""
    from pyspark.sql.types import StructType

    if isinstance(source, StructType):
        return source, False
    schema = getattr(source, "schema", None)
    if not isinstance(schema, StructType):
        raise SettingsError(
            f"create_table: expected a DataFrame or a StructType, found {type(source).__name__}"
        )
    return schema, True


def _joined(argument: str, terms: str | Sequence[str]) -> str:
    each = (terms,) if isinstance(terms, str) else tuple(terms)
    for term in each:
        if not isinstance(term, str):
            raise SettingsError(
                f"create_table: {argument}: expected texts such as `days(at)`, found a"
                f" {type(term).__name__}"
            )
    return ", ".join(each)


def _identifier(table: str) -> TableIdentifier:
    try:
        if "/" in table or not table.isprintable():
            raise ValueError(f"`{table}`: expected a name without `/` and control characters")
        return TableIdentifier.parse(table)
    except ValueError as error:
        raise SettingsError(f"create_table: {error}") from None
