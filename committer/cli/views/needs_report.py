"""The needs of a request for an operator's eyes: what it removes, and what it rests on."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from committer.cli.output.describe import Description
from committer.cli.output.view import Rows
from committer.errors import InvalidMetadataError
from committer.iceberg.expressions.expression_json import parse_expression
from committer.iceberg.expressions.expression_text import print_text
from committer.request.commit_request import CommitRequest
from committer.request.needs import Filter, Needs

_TEXT_MAX = 500
_COUNTED = (
    "removed_data_files",
    "removed_delete_files",
    "referenced_data_files",
    "groups",
    "rewritten_manifests",
)
_FILTERS = ("row_filter", "conflict_filter")


def needs_facts(request: CommitRequest) -> Description:
    """Describe what a request says beside its files; nothing of a plain append."""
    facts: Description = {}
    if request.stage_only:
        facts["staged"] = True
    if request.create_branch:
        facts["creates branch"] = True
    if request.changes:
        facts["changes"] = len(request.changes)
    if request.summary:
        facts["summary"] = ", ".join(f"{key}={text}" for key, text in request.summary.items())
    needs = request.needs
    said = needs.said()
    for name in type(needs).model_fields:
        if name in said:
            facts[name.replace("_", " ")] = _need(needs, name)
    return facts


def _need(needs: Needs, name: str) -> object:
    value = getattr(needs, name)
    if name in _COUNTED:
        return len(value)
    return _filter_text(value) if name in _FILTERS else value


def _filter_text(document: Filter) -> str:
    """Print a filter as people write it; as it is where it is none."""
    try:
        text = print_text(parse_expression(document))
    except InvalidMetadataError:
        text = orjson.dumps(document).decode()
    return text if len(text) <= _TEXT_MAX else text[:_TEXT_MAX] + "…"


def named_files(request: CommitRequest) -> Rows | None:
    """List the files that a request names to be removed, to be live, or to be written
    anew; None without one."""
    rows = list(_named(request.needs))
    if not rows:
        return None
    return Rows("named files", ("named as", "offset", "bytes", "path"), rows)


def _named(needs: Needs) -> Iterator[tuple[object, ...]]:
    for path in needs.removed_data_files:
        yield "removed data", None, None, path
    for one in needs.removed_delete_files:
        yield "removed deletes", one.content_offset, one.content_size_in_bytes, one.file_path
    for path in needs.referenced_data_files:
        yield "referenced data", None, None, path
    for path in needs.rewritten_manifests:
        yield "rewritten manifest", None, None, path
