"""Finds the objects below a table's folders that nothing names, for reports and removals. Pure.

Names are compared in the widest way (`comparable_location`), and so is the last part of each path
by itself: a folder may be reached by another path (a link, a mount, an alias of a bucket), but the
names of files are made to be the only ones. An object whose name compares equal is kept, so
all of this can only keep too much.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from uuid import UUID

from committer.iceberg.entry.data_file import ManifestContent
from committer.iceberg.manifest.manifest_list import ManifestFile
from committer.iceberg.manifest.manifest_paths import NamedFile, iter_named_files
from committer.iceberg.metadata.location_properties import LOCATION_PROPERTIES
from committer.iceberg.metadata.snapshot import Snapshot
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.values.locations import (
    ComparableLocation,
    comparable_location,
    metadata_folder,
    version_in_name,
)
from committer.plan.batch.adopted_paths import adopt_locations
from committer.plan.batch.data_locations import attempt_named
from committer.plan.cleanup.reachability import Reading, each_manifest, rows_of_all
from committer.ports.pointer_swap import LoadedTable
from committer.request.commit_request import CommitRequest
from committer.request.request_format import EncodedRequest

_VERSION_HINT = "version-hint.text"
_STATISTICS = (".stats", ".puffin")
_DATA = (".parquet", ".orc", ".avro")
_METADATA = (".metadata.json", ".metadata.json.gz", ".gz.metadata.json")


class Kind(StrEnum):
    """The kind of an object, by its name. Only objects of a known kind are ever removed."""

    METADATA_FILE = "metadata file"
    MANIFEST_LIST = "manifest list"
    MANIFEST = "manifest"
    STATISTICS = "statistics"
    DATA_FILE = "data file"
    OTHER = "other"


def kind_of(location: str, metadata: TableMetadata) -> Kind:
    """Return the kind of an object below one of the table's folders; a file with checksums is of
    the kind of the file that it belongs to."""
    location = without_checksum(location)
    name = location[location.rfind("/") + 1 :]
    folder = comparable_location(metadata_folder(metadata.location, metadata.properties))
    is_metadata = comparable_location(location).is_within(folder)
    if name.startswith((".", "_")):
        return Kind.OTHER
    if name.endswith(_METADATA):
        return Kind.METADATA_FILE if is_metadata else Kind.OTHER
    if name.endswith(".avro") and is_metadata:
        return Kind.MANIFEST_LIST if name.startswith("snap-") else Kind.MANIFEST
    if name.endswith(_STATISTICS):
        return Kind.STATISTICS if is_metadata else Kind.DATA_FILE
    return Kind.DATA_FILE if name.endswith(_DATA) else Kind.OTHER


def without_checksum(location: str) -> str:
    """Return the location of the file whose checksums Hadoop wrote here, or the location itself."""
    folder, slash, name = location.rpartition("/")
    is_checksum = name.startswith(".") and name.endswith(".crc") and len(name) > len("..crc")
    return f"{folder}{slash}{name[1:-4]}" if is_checksum else location


# --- Folders -------------------------------------------------------------------------------------


def places_of(metadata: TableMetadata) -> tuple[str, ...]:
    """Return the folders that a table writes to; none is within another."""
    found: list[str] = []
    for place in (
        metadata.location,
        *filter(None, map(metadata.properties.get, LOCATION_PROPERTIES)),
    ):
        at = comparable_location(place)
        if not any(at.is_within(comparable_location(known)) for known in found):
            found = [one for one in found if not comparable_location(one).is_within(at)]
            found.append(place.rstrip("/"))
    return tuple(found)


def claimed_places(metadata: TableMetadata) -> tuple[str, ...]:
    """Return the folders where a table may have files: its own, and those that it adopts from."""
    return (*places_of(metadata), *adopt_locations(metadata.properties))


@dataclass(frozen=True, slots=True)
class SearchScope:
    """The scope of a search for a table's orphans: `folders`, except `foreign` ones within them.

    `shared` are folders of the table that others write to as well, where the owner of a file
    is unknown.
    """

    folders: tuple[str, ...]
    foreign: tuple[ComparableLocation, ...]
    shared: tuple[str, ...]

    @classmethod
    def of(cls, metadata: TableMetadata, others: Iterable[str]) -> SearchScope:
        """Divide a table's folders. `others`: the folders of all other tables, and of the inbox."""
        foreign = [comparable_location(other) for other in others]
        folders: list[str] = []
        shared: list[str] = []
        for place in places_of(metadata):
            at = comparable_location(place)
            (shared if any(at.is_within(one) for one in foreign) else folders).append(place)
        own = [comparable_location(folder) for folder in folders]
        within = (one for one in foreign if any(one.is_within(folder) for folder in own))
        return cls(tuple(folders), tuple(dict.fromkeys(within)), tuple(shared))

    def is_foreign(self, location: str) -> bool:
        """Return whether an object in one of the folders is another table's, or the inbox's."""
        at = comparable_location(location)
        return any(at.is_within(folder) for folder in self.foreign)


# --- Names ---------------------------------------------------------------------------------------


class Names:
    """The names in use: two digests of 8 bytes for each file. An added name is always found.
    Another one is found by chance, once in 2**64, and its file is kept.
    """

    def __init__(self) -> None:
        self._digests: dict[int, array[int]] = {}
        self._attempts: set[str] = set()

    def add(self, location: str) -> None:
        path = comparable_location(location).path
        self._add(path)
        self._add(path[path.rfind("/") + 1 :])

    def add_attempt(self, attempt: UUID) -> None:
        """Add an attempt: all files that name it belong to a request that waits."""
        self._attempts.add(str(attempt))

    def __contains__(self, location: str) -> bool:
        return self._holds(comparable_location(location).path)

    def holds_alike(self, location: str) -> bool:
        """Return whether a file has the same name in another folder,
        or that of a waiting attempt."""
        path = comparable_location(location).path
        name = path[path.rfind("/") + 1 :]
        if name == _VERSION_HINT or self._holds(name):
            return True
        return attempt_named(path) in self._attempts

    def _add(self, text: str) -> None:
        if not self._holds(text):
            digest = _digest(text)
            self._digests.setdefault(digest >> 48, array("Q")).append(digest)

    def _holds(self, text: str) -> bool:
        digest = _digest(text)
        return digest in self._digests.get(digest >> 48, ())


def _digest(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())


def name_metadata(table: LoadedTable, names: Names) -> None:
    """Add the metadata files and statistics files that a table's metadata names."""
    metadata = table.metadata
    names.add(table.metadata_location)
    for entry in metadata.metadata_log:
        names.add(entry.metadata_file)
    for file in (*metadata.statistics, *metadata.partition_statistics):
        names.add(file.statistics_path)


def spans_version(table: LoadedTable, location: str) -> bool | None:
    """Return whether an object is a version of a file system table that its metadata log spans, or
    a later one; None if it is no version of such a table.

    Those that the log names are in use anyhow. Another in their range may be the same version in
    another codec's spelling, or a commit that landed after the table was read.
    """
    number = _version(location)
    log = (entry.metadata_file for entry in table.metadata.metadata_log)
    spanned = [version for one in (table.metadata_location, *log) if (version := _version(one))]
    return number >= min(spanned) if number is not None and spanned else None


def _version(location: str) -> int | None:
    return version_in_name(location[location.rfind("/") + 1 :])


def name_snapshots(
    snapshots: Sequence[Snapshot], names: Names, read: set[str], *, missing_is_error: bool
) -> Reading[None]:
    """Add all that these snapshots name: lists, manifests, and the files of every entry, deleted
    ones too. Lists in `read` were read before; those that are read now are added to it.

    Errors: `InvalidMetadataError` for what is not there, if that is an error, or cannot be read.
    """
    fresh = [one for one in snapshots if one.manifest_list not in read]
    rows = yield from rows_of_all(fresh, missing_is_error=missing_is_error)
    new_rows = [row for path, row in rows.items() if path not in read]

    def take(files: Iterable[NamedFile]) -> None:
        for file in files:
            names.add(file.path)

    yield from each_manifest(new_rows, take, missing_is_error=missing_is_error)
    for location in (
        *(one.manifest_list or "" for one in fresh),
        *(r.manifest_path for r in new_rows),
    ):
        names.add(location)
        read.add(location)


# --- Requests ------------------------------------------------------------------------------------


def manifests_named_by(request: CommitRequest) -> tuple[str, ...]:
    """Return the manifests that a request names and does not carry."""
    return tuple(one.path for one in request.manifests if one.path is not None)


def name_request(sealed: EncodedRequest, named: Iterable[bytes], names: Names) -> None:
    """Add all that a request names. `named`: the contents of the manifests that it names.

    Errors: `FrazilError` for a manifest that cannot be read: what it names is not known then.
    """
    request = sealed.request
    for path in (*manifests_named_by(request), *request.needs.named_files):
        names.add(path)
    for path in data_files_of(sealed, named):
        names.add(path)


def data_files_of(sealed: EncodedRequest, named: Iterable[bytes]) -> Iterator[str]:
    """Yield the paths of all data files that a request adds;
    arguments and errors as `name_request`."""
    request = sealed.request
    yield from (str(file["file-path"]) for file in request.files if "file-path" in file)
    carried = (sealed.manifest(one) for one in request.manifests if one.offset is not None)
    for content in (*carried, *named):
        yield from (file.path for file in _files_of(bytes(content)))


def _files_of(content: bytes) -> Iterator[NamedFile]:
    row = ManifestFile(
        manifest_path="a manifest of a request",
        manifest_length=len(content),
        partition_spec_id=0,
        content=ManifestContent.DATA,
        added_snapshot_id=0,
        added_files_count=None,
        existing_files_count=None,
        deleted_files_count=None,
        added_rows_count=None,
        existing_rows_count=None,
        deleted_rows_count=None,
    )
    return iter_named_files(content, row)
