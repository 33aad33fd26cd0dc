"""Creates a table unless it exists. Two concurrent creators make one table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from committer.errors import NoSuchTableError, SettingsError, TableAlreadyExistsError
from committer.ports.pointer_swap import LoadedTable
from workers.requests.blocking_publisher import BlockingPublisher

if TYPE_CHECKING:
    from committer.creation.create_table import NewTable


def ensure_table(publisher: BlockingPublisher, new: NewTable) -> tuple[LoadedTable, bool]:
    """Return the table, and whether this call has created it: of several callers at most one has.

    Errors: `SettingsError` for a table that cannot be, `UnsupportedError` for what the catalog
    cannot do; those of a catalog.
    """
    try:
        return publisher.load_table(new.identifier), False
    except NoSuchTableError:
        pass
    try:
        return publisher.create_table(new), True
    except TableAlreadyExistsError:
        return publisher.load_table(new.identifier), False  # another was faster
    except ValueError as error:
        raise SettingsError(f"table `{new.identifier}` cannot be created: {error}") from None
