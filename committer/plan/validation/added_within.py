"""Checks that the files that an overwrite adds lie within its row filter. Code `partial`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from committer.iceberg.expressions.expression import ALWAYS_TRUE, Expression
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.pruning.metrics_evaluator import strict_metrics_evaluator
from committer.iceberg.pruning.residual import residual_evaluator
from committer.plan.batch.submitted_manifest import CheckedManifest
from committer.plan.operations.change import Change
from committer.plan.operations.conflict import PATHS_MAX, Conflict, ConflictCode
from committer.plan.validation.loaded_manifests import Loaded


@dataclass(frozen=True, slots=True)
class AddedWithinCheck:
    """Depends on the change and the table's schema alone."""

    metadata: TableMetadata
    change: Change

    def rows(self) -> Iterable[ManifestFile]:
        return ()

    def conflict(self, loaded: Loaded) -> Conflict | None:
        filter = self.change.row_filter
        if filter is None:
            return None
        outside = [path for one in self.change.added for path in self._outside(one, filter)]
        if not outside:
            return None
        return Conflict(
            ConflictCode.PARTIAL_MATCH,
            f"{len(outside)} data files that it adds may hold rows outside of its row filter, first"
            f" {outside[0]}: write other files, or leave out `added-files-match-filter`",
            paths=tuple(outside[:PATHS_MAX]),
        )

    def _outside(self, manifest: CheckedManifest, filter: Expression) -> Iterable[str]:
        schema, case_sensitive = self.metadata.current_schema, self.change.case_sensitive
        spec = self.metadata.spec_by_id(manifest.spec_id)
        residual = residual_evaluator(spec, schema, filter, case_sensitive)
        all_match = strict_metrics_evaluator(schema, filter, case_sensitive)
        for file in manifest.files():
            if residual(file.partition) != ALWAYS_TRUE and not all_match(file):
                yield file.file_path
