"""A row filter, prepared for the manifests, partitions and files of one table.

Source: the specification, "Scan Planning".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from operator import is_
from typing import cast

from committer.errors import InvalidMetadataError
from committer.iceberg.expressions.binding import bind, referenced_field_ids
from committer.iceberg.expressions.compiling import compiled
from committer.iceberg.expressions.expression import ALWAYS_TRUE, Expression
from committer.iceberg.expressions.row_evaluator import predicate_evaluator
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.iceberg.metadata.metadata_model import TableMetadata
from committer.iceberg.pruning.manifest_evaluator import manifest_evaluator
from committer.iceberg.pruning.metrics_evaluator import inclusive_metrics_evaluator
from committer.iceberg.pruning.projection import inclusive_projection
from committer.iceberg.pruning.residual import residual_evaluator
from committer.iceberg.scan.metrics_reader import ColumnMetrics
from committer.iceberg.schema.partition_spec import PartitionSpec, find_spec
from committer.iceberg.schema.schema import Schema

_KEPT_MAX = 128
_KEPT_TEXT_MAX = 2_000

# The residual of a partition tuple; None if no row of the partition can match.
Residual = Callable[[tuple[object, ...]], Expression | None]


class ScanFilter:
    """An unbound row filter with a schema and the specs of a table; what it means for a spec is
    worked out once.

    `field_ids` are the columns that it names, `may_match_file` is None if every file may.
    Errors: `InvalidFilterError` if the filter does not fit the schema.
    """

    def __init__(
        self,
        specs: Sequence[PartitionSpec],
        schema: Schema,
        expression: Expression = ALWAYS_TRUE,
        *,
        case_sensitive: bool = True,
    ) -> None:
        self._specs, self._schema = specs, schema
        self._expression, self._case_sensitive = expression, case_sensitive
        bound = bind(expression, schema, case_sensitive=case_sensitive)
        self.field_ids = referenced_field_ids(bound)
        self.may_match_file: Callable[[ColumnMetrics], bool] | None = None
        if expression != ALWAYS_TRUE:
            # Of a file it reads the metrics alone.
            self.may_match_file = cast(
                "Callable[[ColumnMetrics], bool]",
                inclusive_metrics_evaluator(schema, expression, case_sensitive),
            )
        self._manifest_test = cache(self._make_manifest_test)
        self._residual = cache(self._make_residual)

    def may_match_manifest(self, row: ManifestFile) -> bool:
        """Return whether a manifest may have files with rows that match."""
        return self._manifest_test(row.partition_spec_id)(row)

    def residual(self, spec_id: int) -> Residual:
        """Return the function from partition tuples of a spec to residuals."""
        return self._residual(spec_id)

    def _make_manifest_test(self, spec_id: int) -> Callable[[ManifestFile], bool]:
        return manifest_evaluator(*self._arguments(spec_id))

    def _make_residual(self, spec_id: int) -> Residual:
        if self._expression == ALWAYS_TRUE:
            return lambda partition: ALWAYS_TRUE
        projected = inclusive_projection(*self._arguments(spec_id))
        may_match = compiled(projected, predicate_evaluator)
        residual = residual_evaluator(*self._arguments(spec_id))

        def residual_of(partition: tuple[object, ...]) -> Expression | None:
            try:
                return residual(partition) if may_match(partition) else None
            except (TypeError, ValueError, ArithmeticError) as error:
                raise InvalidMetadataError(
                    f"a partition of spec {spec_id}: expected values of its fields' types"
                ) from error

        return residual_of

    def _arguments(self, spec_id: int) -> tuple[PartitionSpec, Schema, Expression, bool]:
        spec = find_spec(self._specs, spec_id)
        return spec, self._schema, self._expression, self._case_sensitive


def scan_filter(
    metadata: TableMetadata, expression: Expression, *, case_sensitive: bool = True
) -> ScanFilter:
    """Return a filter of a table's current schema: the one that was prepared before, if this was
    asked for lately. A writer asks with one filter for each of its epochs. Errors: as `ScanFilter`.
    """
    wanted = _Wanted(
        metadata.partition_specs,
        metadata.current_schema,
        expression,
        case_sensitive,
        repr(expression),
    )
    return _kept(wanted) if len(wanted.text) <= _KEPT_TEXT_MAX else _prepare(wanted)


@dataclass(frozen=True, slots=True, eq=False)
class _Wanted:
    """A filter that is asked for. Commits of a table share its schemas and specs, so these are
    compared by identity. `text` tells filters apart: by value, -0.0 is 0.0, and true is 1.
    """

    specs: tuple[PartitionSpec, ...]
    schema: Schema
    expression: Expression
    case_sensitive: bool
    text: str

    def __hash__(self) -> int:
        return hash((id(self.schema), self.text))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Wanted)
            and self.schema is other.schema
            and (self.text, self.case_sensitive) == (other.text, other.case_sensitive)
            and len(self.specs) == len(other.specs)
            and all(map(is_, self.specs, other.specs))
        )


def _prepare(wanted: _Wanted) -> ScanFilter:
    return ScanFilter(
        wanted.specs, wanted.schema, wanted.expression, case_sensitive=wanted.case_sensitive
    )


_kept = lru_cache(_KEPT_MAX)(_prepare)
