"""Deletes files that were written, and that no table lists nor ever will."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from workers.files.store_access import StoreAccess

_log = logging.getLogger("frazil.workers")


def delete_files(locations: Iterable[str], access: StoreAccess, what: str) -> None:
    """Delete the files of `what`, each once: vectors share one. One that cannot be deleted stays as
    an orphan, and the log says so: there is an error or an answer to tell that matters more.
    """
    files = dict.fromkeys(locations)
    failures = [error for one in files if (error := _delete(one, access)) is not None]
    if failures:
        _log.warning(
            "%d of %d files of %s could not be deleted (%s): no table names them, `frazil"
            " table orphans` finds them",
            len(failures),
            len(files),
            what,
            failures[0],
        )


def _delete(location: str, access: StoreAccess) -> Exception | None:
    from workers.files.file_system import open_file_system  # a commit loads Arrow for this alone

    try:
        open_file_system(location, access).delete(location)
    except Exception as error:  # noqa: BLE001  # see `delete_files`
        return error
    return None
