"""A table as a catalog names it, changes of its pointer alone or with others, and the answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.request.table_identifier import TableIdentifier

if TYPE_CHECKING:  # who only looks at tables does without them
    from committer.iceberg.updates.metadata_update import Update
    from committer.iceberg.updates.requirement import Requirement

DIGEST_PREFIX = "rest-metadata:"
"""Of a location that is none: it is another one whenever the table has changed."""


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """A table as a catalog pointer names it: metadata, and the location that it was read from.

    Errors: `UnsupportedError` for a table without a uuid, which cannot be distinguished from a
    later one of its name.
    """

    identifier: TableIdentifier
    metadata: TableMetadata
    metadata_location: str

    def __post_init__(self) -> None:
        self.metadata.require_uuid()

    @property
    def has_metadata_file(self) -> bool:
        """Whether the location is a file's. A REST catalog may name none: then a digest of the
        metadata stands for it.
        """
        return not self.metadata_location.startswith(DIGEST_PREFIX)


@dataclass(frozen=True, slots=True)
class Swap:
    """One conditional replacement of a table pointer.

    `updates` turn `base.metadata` into `metadata`; `requirements` say what a catalog that evaluates
    changes itself has to check. `metadata_location` is new for each attempt and names where a
    catalog that holds a pointer finds `metadata`; a catalog that writes the metadata file itself
    puts it elsewhere, and says where in its answer.
    """

    base: LoadedTable
    requirements: tuple[Requirement, ...]
    updates: tuple[Update, ...]
    metadata: TableMetadata
    metadata_location: str

    @property
    def table(self) -> LoadedTable:
        """The table as it is once the swap is applied as it is."""
        return LoadedTable(self.base.identifier, self.metadata, self.metadata_location)


@dataclass(frozen=True, slots=True)
class Committed:
    """The swap was applied; `table` is what is current now (perhaps not what was planned)."""

    table: LoadedTable


@dataclass(frozen=True, slots=True)
class Conflict:
    """The condition did not hold, so this attempt never lands. `current` if the back end returned
    it.
    """

    current: LoadedTable | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """The back end refused the change itself (not its timing), so this attempt never lands."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """The answer was lost. The attempt may have landed, or may land later as long as its base is
    current. `crash`: the adapter's own bug, if that is the cause.
    """

    cause: str
    crash: Exception | None = None


SwapAnswer = Committed | Conflict | Rejected | Unknown


@dataclass(frozen=True, slots=True)
class GroupCommitted:
    """Every swap of a group was applied. `tables`: what is current now, in the order of the swaps
    (perhaps not what was planned).
    """

    tables: tuple[LoadedTable, ...]


@dataclass(frozen=True, slots=True)
class GroupConflict:
    """A condition did not hold, so no swap of this group ever lands. `moved`: the tables that are
    known to have failed it; none where the back end does not tell.
    """

    moved: tuple[TableIdentifier, ...] = ()


GroupAnswer = GroupCommitted | GroupConflict | Rejected | Unknown
"""The answers to a group of swaps. `Rejected` and `Unknown` hold for all of them."""
