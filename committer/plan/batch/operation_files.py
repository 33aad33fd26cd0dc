"""Checks the files that a request adds against its operation: those that it names otherwise, its
groups, and the partition specs that it may use.
"""

from __future__ import annotations

from collections.abc import Iterable

from committer.errors import InvalidRequestError
from committer.iceberg.deletes.position_deletes import referenced_data_file
from committer.plan.batch.data_locations import PATH_SHOWN_MAX
from committer.plan.batch.submitted_manifest import CheckedManifest
from committer.reason import Reason
from committer.request.commit_request import CommitRequest


def check_operation_files(request: CommitRequest, manifests: Iterable[CheckedManifest]) -> None:
    """Check them. Errors: `InvalidRequestError` with the reason."""
    if request.operation == "append":
        return
    manifests = tuple(manifests)
    data = [one for one in manifests if one.is_of_data]
    specs = {one.spec_id for one in data}
    if request.operation == "replace-partitions" and len(specs) > 1:
        raise InvalidRequestError(
            Reason.SPEC_MISMATCH,
            f"`replace-partitions` with files of the partition specs {sorted(specs)}, expected one",
        )
    _check_named(request, {path for one in manifests for path in one.walked.paths})
    _check_deletes(request, manifests)
    if request.needs.groups:
        _check_groups(request, {path for one in data for path in one.walked.paths})


def _check_named(request: CommitRequest, added: set[str]) -> None:
    needs = request.needs
    removed = (*needs.removed_data_files, *(one.file_path for one in needs.removed_delete_files))
    for path in removed:
        if path in added:
            raise InvalidRequestError(
                Reason.PATH_REPEATED,
                f"`{path[:PATH_SHOWN_MAX]}` is a file to add and a file to remove",
            )


def _check_deletes(request: CommitRequest, manifests: Iterable[CheckedManifest]) -> None:
    """Refuse deletes of a file that the same request removes: they would be left without it."""
    removed = frozenset(request.needs.removed_data_files)
    for manifest in manifests:
        for file in manifest.walked.delete_files:
            named = referenced_data_file(file)
            if named in removed:
                raise InvalidRequestError(
                    Reason.MANIFEST_CONTENT_MISMATCH,
                    f"delete file `{file.file_path[:PATH_SHOWN_MAX]}` is of a data file that the"
                    " request removes",
                )


def _check_groups(request: CommitRequest, added: set[str]) -> None:
    grouped = {path for group in request.needs.groups for path in group.added_data_files}
    if grouped != added:
        path = min(grouped ^ added)
        where = "in a group, and not added" if path in grouped else "added, and in no group"
        raise InvalidRequestError(
            Reason.REQUEST_MALFORMED,
            f"`{path[:PATH_SHOWN_MAX]}` is {where}: expected each added data file in one of"
            " `groups`",
        )
