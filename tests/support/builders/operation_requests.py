"""Requests of other operations than appends, as a client makes them."""

from __future__ import annotations

from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.ports.pointer_swap import LoadedTable
from committer.request.commit_request import CommitRequest
from committer.request.needs import Needs
from committer.request.request_format import EncodedRequest
from tests.support.builders.request_builders import build_file, build_line, build_manifest, seal


def build_operation(
    table: LoadedTable,
    operation: str,
    *,
    files_count: int = 0,
    partition: tuple[object, ...] = (),
    needs: dict[str, object] | None = None,
    summary: dict[str, str] | None = None,
    **line: object,
) -> EncodedRequest:
    """Build a request that adds so many data files; keyword arguments as `build_line`. `needs` as
    in JSON."""
    request = build_line(table, **line)  # type: ignore[arg-type]  # passed through
    changed = {
        "operation": operation,
        "needs": Needs.model_validate(needs or {}),
        "summary": summary or {},
    }
    request = request.model_copy(update=changed)
    files = [
        build_file(table.metadata, request.attempt, number=number, partition=partition)
        for number in range(files_count)
    ]
    sealed = seal(request, [build_manifest(table.metadata, files)] if files else [])
    CommitRequest.model_validate_json(sealed.request.model_dump_json(by_alias=True))
    return sealed


def base_of(metadata: TableMetadata) -> dict[str, object]:
    """Return the `needs` of a client that has read the table as it is."""
    head = metadata.branch_head()
    assert head is not None
    return {"base-snapshot-id": head.snapshot_id, "base-sequence-number": head.sequence_number}
