"""The result of a change. Values only."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Changed:
    """The result of a change: the snapshot that it made, None where there was nothing to do, or
    where no queue says which one was staged. The rows that it deleted (None of a delete that
    removed whole files unread), updated and inserted.
    """

    snapshot_id: int | None = None
    sequence_number: int | None = None
    deleted_rows: int | None = 0
    updated_rows: int = 0
    inserted_rows: int = 0
