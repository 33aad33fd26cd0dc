"""Bounds that no reader of their column's type can decode, and such as all can, in both forms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from committer.iceberg.entry.data_file import DataFile
from committer.ports.pointer_swap import LoadedTable
from committer.reason import Reason
from committer.request.commit_request import CommitRequest
from committer.request.request_format import EncodedRequest, seal_request
from tests.corpus.hostile import Hostile, Sent, short
from tests.corpus.tables import COLUMN_IDS, TYPES
from tests.support.builders.request_builders import build_file, build_line, build_manifest, seal
from tests.support.iceberg.bounds_by_type import FORMS
from tests.support.iceberg.content_file_printer import print_content_file

FORM_NAMES = ("manifest", "files")
_LAST_ID = max(COLUMN_IDS.values())
# Of no column: readers of a column that gets this id later would fail.
_NO_COLUMN: Mapping[int, str] = {
    _LAST_ID + 1: "the next column",
    2**30: "an id that no column has had",
    2**31 - 300: "an id below the reserved ones",
}


def in_form(form: str, line: CommitRequest, table: LoadedTable, file: DataFile) -> EncodedRequest:
    """Build a request for this file: by a manifest, or listed as JSON."""
    metadata = table.metadata
    if form == "manifest":
        return seal(line, [build_manifest(metadata, [file])])
    document = print_content_file(file, metadata.default_spec, metadata.current_schema)
    return seal_request(line.model_copy(update={"files": (document,)}))


def _bounds(
    name: str, reason: Reason | None, form: str, **bounds: Mapping[int, bytes] | None
) -> Hostile:
    def send(table: LoadedTable, producer: str) -> Sent:
        line = build_line(table, producer=producer)
        none: dict[str, object] = {"lower_bounds": None, "upper_bounds": None}
        file = replace(build_file(table.metadata, line.attempt), **(none | bounds))  # type: ignore[arg-type]  # by name
        return Sent.of(in_form(form, line, table, file))

    return Hostile(f"{name} ({form})", reason, send, table=TYPES)


def _by_type(side: int, reason: Reason | None) -> Iterable[Hostile]:
    """Yield cases of bounds by type. `side`: 0 for valid bounds, 1 for others."""
    for kind, values in FORMS.items():
        for value in values[side]:
            shown = f"{short(value)} as a bound of {kind}"
            column = COLUMN_IDS[kind]
            for form in FORM_NAMES:
                yield _bounds(f"{shown}, lower", reason, form, lower_bounds={column: value})
            yield _bounds(f"{shown}, upper", reason, "manifest", upper_bounds={column: value})


WRONG: tuple[Hostile, ...] = (
    *_by_type(1, Reason.BOUND_MALFORMED),
    *(
        _bounds(f"a bound of {name}", Reason.SCHEMA_MISMATCH, form, lower_bounds={column: b""})
        for column, name in _NO_COLUMN.items()
        for form in FORM_NAMES
    ),
)
# Lower above upper, and NaN: bounds that mislead are the writer's word.
RIGHT: tuple[Hostile, ...] = (
    *_by_type(0, None),
    _bounds(
        "a lower bound above the upper one",
        None,
        "manifest",
        lower_bounds={COLUMN_IDS["int"]: b"\xff\xff\xff\x7f"},
        upper_bounds={COLUMN_IDS["int"]: bytes(4)},
    ),
)
