"""Writes and opens data files by location; local files here. No table knowledge.

A location is literal after its scheme: `%2F` in a partition folder is part of the name, as for
every Iceberg reader.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections import deque
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa
from pyarrow import fs

from committer.errors import AlreadyExistsError, UnsupportedError
from workers.files.adls_files import AdlsFiles, is_adls
from workers.files.gcs_files import GcsFiles, is_gcs
from workers.files.object_files import ObjectFiles
from workers.files.s3_files import S3Files, is_s3
from workers.files.store_access import StoreAccess

_SYNCS_AT_ONCE = 8
_LOCAL = re.compile(r"(?:file:(?://)?)?(/(?!/).*)")


class FileSystem(Protocol):
    """The operations of a file system that a data file writer needs."""

    def create(self, location: str) -> pa.NativeFile:
        """Open a new file for writing.

        Errors: `AlreadyExistsError` for an existing file, if the file system detects it.
        """

    def make_durable(self, locations: Iterable[str]) -> None:
        """Return once these closed files outlive a power cut."""

    def delete(self, location: str) -> None:
        """Remove a file; an absent one is fine."""


class LocalFileSystem:
    """Files of this machine: `file:/…`, `file:///…` or a bare absolute path."""

    def __init__(self) -> None:
        # The folders in which folders were made since.
        self._grown: set[Path] = set()

    def create(self, location: str) -> pa.NativeFile:
        path = local_path(location)
        try:
            self._claim(path)
        except FileExistsError as error:
            raise AlreadyExistsError(f"data file {location} exists already") from error
        return fs.LocalFileSystem().open_output_stream(str(path))

    def open(self, location: str) -> pa.NativeFile:
        """Open a file for ranged reads. Errors: `FileNotFoundError`; other `OSError`s."""
        return fs.LocalFileSystem().open_input_file(str(local_path(location)))

    def make_durable(self, locations: Iterable[str]) -> None:
        files = {local_path(location) for location in locations}
        paths = files | {path.parent for path in files} | self._grown
        self._grown = set()
        if not paths:
            return
        # A disk syncs some at once in the time of one.
        with ThreadPoolExecutor(min(len(paths), _SYNCS_AT_ONCE)) as threads:
            deque(threads.map(_sync, paths), maxlen=0)

    def delete(self, location: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            local_path(location).unlink()

    def _claim(self, path: Path) -> None:
        """Take the name, which pyarrow cannot: it would overwrite a file that is there."""
        try:
            path.touch(exist_ok=False)
        except FileNotFoundError:
            self._make_folder(path.parent)
            path.touch(exist_ok=False)

    def _make_folder(self, folder: Path) -> None:
        try:
            folder.mkdir(exist_ok=True)
        except FileNotFoundError:
            self._make_folder(folder.parent)
            folder.mkdir(exist_ok=True)
        self._grown.add(folder.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def local_path(location: str) -> Path:
    """Return the path of a location.
    Errors: `UnsupportedError` for one that is not on this machine."""
    match = _LOCAL.fullmatch(location)
    if match is None:
        raise UnsupportedError(
            f"location {location}: expected a local path, s3://…, gs://… or abfss://…"
        )
    return Path(match[1])


def open_file_system(location: str, access: StoreAccess) -> ObjectFiles | LocalFileSystem:
    """Return the file system that a table's location is on; nothing is asked yet.

    Errors: `UnsupportedError` for a place not known here.
    """
    if (objects := open_object_store(location, access)) is not None:
        return objects
    local_path(location)
    return LocalFileSystem()


@dataclass(frozen=True, slots=True)
class StoredFiles:
    """Opens files for ranged reads, each where its location says: what a reader's tasks share."""

    access: StoreAccess

    def __call__(self, location: str) -> pa.NativeFile:
        """Open a file. Errors: `FileNotFoundError`; other `OSError`s; `UnsupportedError`."""
        return open_file_system(location, self.access).open(location)


def open_object_store(location: str, access: StoreAccess) -> ObjectFiles | None:
    """Return the object store of a location; None for a location elsewhere. Errors: as above."""
    if is_s3(location):
        return S3Files(access.s3)
    if is_gcs(location):
        return GcsFiles(access.gcs)
    if is_adls(location):
        return AdlsFiles(location, access.adls)
    return None
