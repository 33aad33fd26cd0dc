"""Data files in an object store, by one of pyarrow's own clients. Runs on executors.

An object exists, whole, once its file is closed; Azure shows an empty one before. A process that
dies before leaves no object with rows (a store may keep the parts of a large one until a lifecycle
rule removes them).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from committer.errors import AlreadyExistsError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import fs


class ObjectFiles:
    """Objects by location. A `FileSystem`. `path_of` makes pyarrow's path of a location."""

    def __init__(self, files: fs.FileSystem, path_of: Callable[[str], str]) -> None:
        self._files = files
        self._path_of = path_of

    def create(self, location: str) -> pa.NativeFile:
        """Create a file, as `FileSystem.create`.
        Two concurrent writers of one location are not detected.
        """
        path = self._path_of(location)
        if self._is_taken(path):
            raise AlreadyExistsError(f"data file {location} exists already")
        return self._files.open_output_stream(path)

    def open(self, location: str) -> pa.NativeFile:
        """Open an object for ranged reads. Errors: `FileNotFoundError`; other `OSError`s."""
        return self._files.open_input_file(self._path_of(location))

    def make_durable(self, locations: Iterable[str]) -> None:
        """Do nothing: an object is durable once it is there."""

    def delete(self, location: str) -> None:
        """Delete a file; if the folder gets empty, pyarrow may leave an empty object as its
        marker."""
        with contextlib.suppress(FileNotFoundError):
            self._files.delete_file(self._path_of(location))

    def read(self, location: str) -> bytes:
        """Read a whole object. Errors: `OSError`."""
        with self._files.open_input_stream(self._path_of(location)) as stream:
            return bytes(stream.read())

    def _is_taken(self, path: str) -> bool:
        try:
            self._files.open_input_file(path).close()
        except OSError:
            # It does not exist; or the check is forbidden or fails: then the upload reports the
            # error.
            return False
        return True
