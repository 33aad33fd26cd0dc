"""Deletes the files that tasks of a failed write have reported, where no request can name them.

Called on the driver, when Spark aborts a write.
"""

from __future__ import annotations

from collections.abc import Sequence

from workers.files.store_access import StoreAccess
from workers.sink.files_written import FilesWritten
from workers.spark.discarded_files import delete_files


def delete_unpublished(messages: Sequence[FilesWritten | None], access: StoreAccess) -> None:
    """Delete the reported files of a write of which a task has no message.

    Spark calls `commit` only once it has the message of every task, so no request was made of
    these. Where all are there, a commit may have raised after its request had become durable:
    then nothing is deleted. A file that cannot be deleted stays as an orphan, and the log says so.
    """
    if None not in messages:
        return
    files = [file.file_path for one in messages if one is not None for file in one.files]
    delete_files(files, access, "a write that Spark has aborted")
