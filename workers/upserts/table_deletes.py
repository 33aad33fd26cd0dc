"""Reads how a table wants old rows of upserts to be deleted, for a writer that does not say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from committer.errors import SettingsError
from committer.table_defaults import UPSERT_DELETES, UPSERT_DELETES_PROPERTY
from workers.upserts.upsert import UpsertDeletes


def deletes_of(table: str, properties: Mapping[str, str]) -> UpsertDeletes:
    """Read the property `frazil.upsert.deletes` of a table: `equality` without it.
    Errors: `SettingsError` for any other value."""
    found = properties.get(UPSERT_DELETES_PROPERTY, UPSERT_DELETES[0]).strip().lower()
    if found not in UPSERT_DELETES:
        raise SettingsError(
            f"table `{table}`: property `{UPSERT_DELETES_PROPERTY}` is `{found}`, expected"
            f" `{'` or `'.join(UPSERT_DELETES)}`"
        )
    return cast("UpsertDeletes", found)
