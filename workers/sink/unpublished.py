"""Deletes the files that tasks of a failed write have reported, where no request can name them.

Called on the driver, when Spark aborts a write.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from workers.files.file_system import open_file_system
from workers.files.store_access import StoreAccess
from workers.sink.task_writer import FilesWritten

_log = logging.getLogger("frazil.workers")


def delete_unpublished(messages: Sequence[FilesWritten | None], access: StoreAccess) -> None:
    """Delete the reported files of a write of which a task has no message.

    Spark calls `commit` only once it has the message of every task, so no request was made of
    these. Where all are there, a commit may have raised after its request had become durable:
    then nothing is deleted. A file that cannot be deleted stays as an orphan, and the log says so.
    """
    if None not in messages:
        return
    locations = [file.file_path for one in messages if one is not None for file in one.files]
    failures = [error for location in locations if (error := _delete(location, access)) is not None]
    if failures:
        _log.warning(
            "%d of %d data files of a write that Spark has aborted could not be deleted (%s): no"
            " table names them, `frazil table orphans` finds them",
            len(failures),
            len(locations),
            failures[0],
        )


def _delete(location: str, access: StoreAccess) -> Exception | None:
    try:
        open_file_system(location, access).delete(location)
    except Exception as error:  # noqa: BLE001  # Spark has an error to tell that matters more
        return error
    return None
