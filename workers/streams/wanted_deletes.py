"""Chooses how an upsert deletes old rows: as its options say, or else as its table does."""

from __future__ import annotations

from collections.abc import Mapping

from committer.errors import NoSuchTableError
from workers.settings.option_values import one_place, table_name
from workers.settings.upsert_options import DELETES, KEYS
from workers.settings.worker_setting_names import is_setting


def looks_up(options: Mapping[str, str]) -> bool:
    """Return whether a write with these options, in any case, looks up the rows that it deletes.

    Where an upsert does not say, its table is read, or the options of a table that is not created
    yet. Errors: `SettingsError`; those of `load_metadata`.
    """
    given = {name.lower(): value for name, value in options.items()}
    if given.get(DELETES) or not given.get(KEYS):
        return given.get(DELETES, "").lower() == "positions"
    from workers.upserts.table_deletes import deletes_of

    table = table_name(one_place(given))
    return deletes_of(table, _properties(table, given)) == "positions"


def _properties(table: str, given: Mapping[str, str]) -> Mapping[str, str]:
    from workers.branches.branch_state import load_metadata
    from workers.settings.create_options import create_options

    settings = {name: value for name, value in given.items() if is_setting(name)}
    try:
        return load_metadata(table, settings).properties
    except NoSuchTableError:
        created = create_options(given)
        return {} if created is None else created.properties
