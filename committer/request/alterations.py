"""The changes of a table that an `alter` request asks for: refs, schema, layout, properties.

Each is a document with an `action`; where the REST catalog specification has the action, its name
and its keys are taken. A change is an intent (add this column), planned on the table as it is when
its turn comes; no document holds a whole schema that a later one could undo. The changes of one
request are made in their order, all or none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, Field, JsonValue, model_validator

from committer.errors import InvalidMetadataError, UnsupportedError
from committer.iceberg.metadata.metadata_check import RESERVED_PROPERTIES
from committer.iceberg.schema.schema import parse_schema
from committer.iceberg.values.transforms import UnknownTransform, parse_transform
from committer.iceberg.values.type_json import parse_type
from committer.request.request_model import (
    FIRST_ERROR,
    Count,
    Document,
    Model,
    Name,
    Printable,
    at_most,
)

CHANGES_MAX = 100
PROPERTIES_MAX = 1_000
_OWN_PREFIX = "frazil."
_COLUMN_CHARS_MAX = 4096
_Value = TypeVar("_Value")


def _parsed_by(parse: Callable[[Any], object]) -> AfterValidator:
    """Return the check that a value can be parsed. Its message is the parser's."""

    def check(value: _Value) -> _Value:
        try:
            parse(value)
        except (InvalidMetadataError, UnsupportedError) as error:
            raise ValueError(str(error)) from error
        return value

    return AfterValidator(check)


def _parse_known_transform(text: str) -> None:
    if isinstance(parse_transform(text), UnknownTransform):
        raise UnsupportedError(f"the transform `{text[:100]}` is not known")


def _no_reserved(keys: dict[str, str] | tuple[str, ...]) -> dict[str, str] | tuple[str, ...]:
    for key in keys:
        if key.startswith(_OWN_PREFIX):
            raise ValueError(
                f"property `{key}` is Frazil's own: `frazil table set` changes it, no request does"
            )
        if key in RESERVED_PROPERTIES:
            raise ValueError(f"property `{key}` is reserved: engines tell it of the table")
    return keys


Positive = Annotated[int, Field(ge=1, le=2**63 - 1)]
SnapshotNumber = Annotated[int, Field(ge=1, le=2**31 - 1)]
# A name, with those of the structs around it: `place.city`.
Column = Annotated[str, Field(min_length=1, max_length=_COLUMN_CHARS_MAX), Printable]
Type = Annotated[JsonValue, _parsed_by(parse_type)]
Transform = Annotated[str, Field(max_length=100), _parsed_by(_parse_known_transform)]
PropertyKey = Annotated[str, Field(min_length=1, max_length=1024), Printable]
PropertyText = Annotated[str, Field(max_length=1024 * 1024)]


# --- Branches and tags ---------------------------------------------------------------------------


class _AtSnapshot(Model):
    """A snapshot by its id, or as what a branch or tag names; neither: the request's branch."""

    snapshot_id: Count | None = None
    ref: Name | None = None

    @model_validator(mode="after")
    def _one_of(self) -> Self:
        if self.snapshot_id is not None and self.ref is not None:
            raise ValueError("expected one of `snapshot-id` and `ref`")
        return self


class CreateBranch(_AtSnapshot):
    """Create a branch, whose name must be free."""

    action: Literal["create-branch"]
    name: Name
    if_not_exists: bool = False
    min_snapshots_to_keep: SnapshotNumber | None = None
    max_snapshot_age_ms: Positive | None = None
    max_ref_age_ms: Positive | None = None


class CreateTag(_AtSnapshot):
    """Create a tag, whose name must be free."""

    action: Literal["create-tag"]
    name: Name
    if_not_exists: bool = False
    max_ref_age_ms: Positive | None = None


class ReplaceBranch(_AtSnapshot):
    """Let a branch name another snapshot, related or not. Its retention stays."""

    action: Literal["replace-branch"]
    name: Name


class ReplaceTag(_AtSnapshot):
    """Let a tag name another snapshot. Its retention stays."""

    action: Literal["replace-tag"]
    name: Name


class SetSnapshotRef(Model):
    """Create a branch or tag, or let an existing one of that type name this snapshot, with exactly
    this retention."""

    action: Literal["set-snapshot-ref"]
    ref_name: Name
    type: Literal["branch", "tag"]
    snapshot_id: Count
    min_snapshots_to_keep: SnapshotNumber | None = None
    max_snapshot_age_ms: Positive | None = None
    max_ref_age_ms: Positive | None = None


class RemoveSnapshotRef(Model):
    """Remove a branch other than main, or a tag. `type`: refuse it if it is of the other."""

    action: Literal["remove-snapshot-ref"]
    ref_name: Name
    type: Literal["branch", "tag"] | None = None
    if_exists: bool = False


class FastForward(Model):
    """Move a branch (none: the request's) to the head of another one that descends from its own.
    A branch that does not exist is created."""

    action: Literal["fast-forward"]
    branch: Name | None = None
    to: Name


class RollbackToSnapshot(Model):
    """Move the request's branch back to an ancestor of its head."""

    action: Literal["rollback-to-snapshot"]
    snapshot_id: Count


class RollbackToTimestamp(Model):
    """Move the request's branch back to its last snapshot that is older than a time."""

    action: Literal["rollback-to-timestamp"]
    timestamp_ms: Count


class SetCurrentSnapshot(_AtSnapshot):
    """Move the request's branch to any snapshot."""

    action: Literal["set-current-snapshot"]

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if self.snapshot_id is None and self.ref is None:
            raise ValueError("expected one of `snapshot-id` and `ref`")
        return self


# --- Schema --------------------------------------------------------------------------------------


class _ColumnChange(Model):
    case_sensitive: bool = True


class AddColumn(_ColumnChange):
    """Add a column at the end, or a field to the struct `parent`. Ids in `type` are given anew.

    `default`: its value in rows that lack it, and in rows that are written without it, in the
    specification's JSON form; a number may be text. A required column needs one.
    """

    action: Literal["add-column"]
    name: Column
    parent: Column | None = None
    type: Type
    required: bool = False
    doc: str | None = None
    default: JsonValue = None
    if_not_exists: bool = False


class DropColumn(_ColumnChange):
    """Drop a column with all that is in it."""

    action: Literal["drop-column"]
    name: Column
    if_exists: bool = False


class RenameColumn(_ColumnChange):
    """Rename a column; `new_name` is without the names of the structs around it."""

    action: Literal["rename-column"]
    name: Column
    new_name: Column


class UpdateColumnType(_ColumnChange):
    """Widen the type of a column (int to long, float to double, more digits of a decimal …)."""

    action: Literal["update-column-type"]
    name: Column
    type: Type


class UpdateColumnDoc(_ColumnChange):
    """Set what is written about a column; without `doc`, remove it."""

    action: Literal["update-column-doc"]
    name: Column
    doc: str | None = None


class UpdateColumnDefault(_ColumnChange):
    """Set the value of rows that are written without the column; without `default`, remove it."""

    action: Literal["update-column-default"]
    name: Column
    default: JsonValue = None


class MakeColumnOptional(_ColumnChange):
    """Let a required column be null."""

    action: Literal["make-column-optional"]
    name: Column


class MoveColumn(_ColumnChange):
    """Place a column first in its struct, or beside another one."""

    action: Literal["move-column"]
    name: Column
    first: bool = False
    before: Column | None = None
    after: Column | None = None

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if [self.first, self.before is not None, self.after is not None].count(True) != 1:
            raise ValueError("expected one of `first`, `before` and `after`")
        return self


class SetIdentifierFields(_ColumnChange):
    """Set the columns that identify a row; without any, none do."""

    action: Literal["set-identifier-fields"]
    names: Annotated[tuple[Column, ...], Field(max_length=1000), FIRST_ERROR]


class UnionByName(_ColumnChange):
    """Take over the columns that a schema has and the table lacks, as optional ones, and its wider
    types. `with_ids`: the columns have to have the ids of `schema` then, because data files were
    written with these; what is optional in `schema` becomes so.
    """

    action: Literal["union-by-name"]
    schema_: Annotated[Document, _parsed_by(parse_schema), Field(alias="schema")]
    with_ids: bool = False


# --- Partitions, order, properties ---------------------------------------------------------------


class AddPartitionField(_ColumnChange):
    """Partition new files by a transform of a column. Without a name it gets Iceberg's own."""

    action: Literal["add-partition-field"]
    source: Column
    transform: Transform = "identity"
    name: Name | None = None


class RemovePartitionField(Model):
    """Partition new files by a field no more."""

    action: Literal["remove-partition-field"]
    name: Name


class RenamePartitionField(Model):
    """Rename a partition field."""

    action: Literal["rename-partition-field"]
    name: Name
    new_name: Name


class SortKey(Model):
    """A column, or a transform of it, that rows are sorted by."""

    source: Column
    transform: Transform = "identity"
    direction: Literal["asc", "desc"] = "asc"
    null_order: Literal["nulls-first", "nulls-last"] | None = None


class ReplaceSortOrder(_ColumnChange):
    """Replace the default sort order; without fields, the table is unsorted."""

    action: Literal["replace-sort-order"]
    fields: Annotated[tuple[SortKey, ...], Field(max_length=100)]


class SetProperties(Model):
    """Set properties of the table."""

    action: Literal["set-properties"]
    updates: Annotated[
        dict[PropertyKey, PropertyText],
        Field(min_length=1, max_length=PROPERTIES_MAX),
        at_most(PROPERTIES_MAX),
        AfterValidator(_no_reserved),
    ]


class RemoveProperties(Model):
    """Remove properties of the table; unknown ones are ignored."""

    action: Literal["remove-properties"]
    removals: Annotated[
        tuple[PropertyKey, ...],
        Field(min_length=1, max_length=PROPERTIES_MAX),
        FIRST_ERROR,
        AfterValidator(_no_reserved),
    ]


class UpgradeFormatVersion(Model):
    """Upgrade the table to a later format version. There is no way back."""

    action: Literal["upgrade-format-version"]
    format_version: Annotated[int, Field(ge=1, le=3)]


RefChange = (
    CreateBranch
    | CreateTag
    | ReplaceBranch
    | ReplaceTag
    | SetSnapshotRef
    | RemoveSnapshotRef
    | FastForward
    | RollbackToSnapshot
    | RollbackToTimestamp
    | SetCurrentSnapshot
)
SchemaChange = (
    AddColumn
    | DropColumn
    | RenameColumn
    | UpdateColumnType
    | UpdateColumnDoc
    | UpdateColumnDefault
    | MakeColumnOptional
    | MoveColumn
    | SetIdentifierFields
    | UnionByName
)
LayoutChange = AddPartitionField | RemovePartitionField | RenamePartitionField | ReplaceSortOrder
PropertyChange = SetProperties | RemoveProperties | UpgradeFormatVersion
TableChange = Annotated[
    RefChange | SchemaChange | LayoutChange | PropertyChange, Field(discriminator="action")
]
TableChanges = Annotated[tuple[TableChange, ...], Field(max_length=CHANGES_MAX)]
