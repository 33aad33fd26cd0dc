"""Requests that change a table without files, as a client makes them."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import TypeAdapter

from committer.ports.pointer_swap import LoadedTable
from committer.request.alterations import TableChanges
from committer.request.needs import Needs
from committer.request.request_format import EncodedRequest, read_request
from tests.support.builders.request_builders import build_line, seal

_CHANGES: TypeAdapter[TableChanges] = TypeAdapter(TableChanges)


def build_alter(
    table: LoadedTable,
    *changes: Mapping[str, object],
    needs: Mapping[str, object] | None = None,
    **line: object,
) -> EncodedRequest:
    """Build a request of these changes; keyword arguments as `build_line`."""
    request = build_line(table, **line)  # type: ignore[arg-type]  # passed through
    changed = {
        "operation": "alter",
        "changes": _CHANGES.validate_python(changes),
        "needs": Needs.model_validate(needs or {}),
        "files": (),
    }
    sealed = seal(request.model_copy(update=changed), [])
    return read_request(sealed.content, key=sealed.key)
