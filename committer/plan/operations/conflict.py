"""The answer to an operation that cannot land on the branch as it is now."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ConflictCode(StrEnum):
    """The reasons for which an operation cannot land. Codes are public: clients decide by them."""

    ADDED = "added"
    """A data file that may hold rows in its scope was added since its base, by anything but a
    rewrite of older rows."""
    NEW_DELETES = "newdel"
    """A delete file that may hit rows in its scope was added since its base."""
    FILE_DELETES = "filedel"
    """Rows of a file that it removes were deleted since its base."""
    FILE_POSITIONS = "filepos"
    """As `filedel`, by positions."""
    DELETED = "deleted"
    """A data file in its scope was removed since its base."""
    NOT_LIVE = "exist"
    """A data file that it refers to is not live."""
    MISSING = "missing"
    """A data or delete file that it removes, or a manifest that it rewrites, is not live."""
    SECOND_VECTOR = "dv"
    """Its deletion vector and one that was added since its base delete the same rows, or one of
    the two changes writes them again."""
    ALREADY_LIVE = "live"
    """A file that it adds is live already, or a partition that it may only append to has files."""
    OTHER_PARTITION = "partition"
    """A delete file that it adds is of another partition than the data file that it names."""
    OTHER_ROWS = "rows"
    """It is a rewrite that would change rows, or make them older than they were."""
    PARTIAL_MATCH = "partial"
    """Its row filter matches a part of a file's rows, or less than all rows that it adds."""
    HISTORY = "history"
    """The history since its base has expired, and the head alone does not answer."""
    NO_ANCESTOR = "ancestor"
    """Its base is no ancestor of the branch's head, or never was a snapshot of the table; or a
    branch would move to a snapshot that does not descend as asked: a fast-forward, a rollback, a
    cherry-pick that replaces partitions."""
    PICKED = "picked"
    """The snapshot that it picks was picked before, or its WAP id was published."""
    UNDECIDED = "undecided"
    """The manifests that decide cannot be read: one is damaged or of an unknown form, or they have
    more bytes than a plan reads."""
    INCOMPATIBLE = "incompatible"
    """The table, as it is now, does not take the change: a name that is taken, or is not there, or
    a change that the format's rules of evolution forbid, or a staged snapshot that does not fit."""


# How many paths a message names.
PATHS_MAX = 5


@dataclass(frozen=True, slots=True)
class Conflict:
    """`snapshot_id`: the snapshot that it conflicts with, where one is known. `paths`: the first
    files of the conflict, at most `PATHS_MAX`.
    """

    code: ConflictCode
    message: str
    snapshot_id: int | None = None
    paths: tuple[str, ...] = ()


def changed_rows(message: str, *paths: str) -> Conflict:
    """Return the conflict of a rewrite that would not keep the rows as they are."""
    return Conflict(ConflictCode.OTHER_ROWS, f"{message}: a rewrite changes no rows", paths=paths)
