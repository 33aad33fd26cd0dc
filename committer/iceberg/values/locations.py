"""The places and names of a table's files. Strings in, strings out.

Source: docs/reference/iceberg-notes.md 3.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from unicodedata import normalize
from urllib.parse import unquote
from uuid import UUID

import mmh3

from committer.errors import InvalidMetadataError

_VERSION = re.compile(r"(\d{1,9})-")
_FILE_SYSTEM_VERSION = re.compile(
    r"v([1-9]\d{0,8})(?:(?:\.gz)?\.metadata\.json|\.metadata\.json\.gz)"
)
_HASH_BITS = 20
_SLASHES = re.compile("//+")


def _folder(location: str, properties: Mapping[str, str], key: str, name: str) -> str:
    return (properties.get(key) or f"{location.rstrip('/')}/{name}").rstrip("/")


def table_location(location: str) -> str:
    """Return a table's location as it is kept: only a scheme's slashes at its end stay.

    Errors: `InvalidMetadataError` where nothing is left.
    """
    stripped = location.rstrip("/")
    if not stripped:
        raise InvalidMetadataError(f"`location`: expected a path, found `{location[:100]}`")
    return f"{stripped}//" if stripped.endswith(":") else stripped


# Azure's clouds. No secret is sent to another host, whatever a table's metadata names.
AZURE_CLOUDS = (
    "core.windows.net",
    "core.chinacloudapi.cn",
    "core.usgovcloudapi.net",
    "core.cloudapi.de",
    "fabric.microsoft.com",
)
_AUTHORITY = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*))?")
_SAME_SCHEMES = {"s3a": "s3", "s3n": "s3", "abfs": "abfss", "wasb": "abfss", "wasbs": "abfss"}


@dataclass(frozen=True, slots=True)
class ComparableLocation:
    """A location as it is compared with others: `file:/a`, `file:///a` and `/a` are equal, and so
    are `s3:` and `s3a:`, and both endpoints of an account on Azure. `store` is the scheme with the
    bucket or host.
    """

    store: str
    path: str

    def is_within(self, folder: ComparableLocation) -> bool:
        """Return whether the location is the folder, or below it."""
        below = folder.path.rstrip("/") + "/"
        return self.store == folder.store and (self.path.rstrip("/") + "/").startswith(below)


def comparable_location(location: str) -> ComparableLocation:
    """Return the form in which a location is compared.
    Spellings of which some engine might mean the same object compare equal (percent signs, Unicode
    forms, doubled slashes), although no storage says so.
    """
    store, rest = _store_and_path(location)
    path = _SLASHES.sub("/", unquote(rest))
    return ComparableLocation(store, normalize("NFC", path))


def _store_and_path(location: str) -> tuple[str, str]:
    """Divide a location into its store, as it is compared, and its path, as it is spelled."""
    match = _AUTHORITY.match(location)
    scheme, authority = (match[1] or "file", match[2] or "") if match else ("file", "")
    rest = location[match.end() :] if match else location
    scheme = _SAME_SCHEMES.get(scheme.lower(), scheme.lower())
    host = "" if scheme == "file" else authority
    if scheme == "abfss":
        host = host.replace(".blob.", ".dfs.", 1)
    return f"{scheme}://{host}", rest


# A query, a fragment, or a separator of another system; an empty segment.
_AMBIGUOUS = re.compile(r"[\\?#]|//")


def is_plainly_within(location: str, folder: str) -> bool:
    """Return whether every engine takes the location for the folder, or for one in it: it begins
    with the path of the folder, letter for letter, and nothing in the rest could lead out of it.
    """
    (store, path), (folder_store, folder_path) = map(_store_and_path, (location, folder))
    path, folder_path = path.rstrip("/"), folder_path.rstrip("/")
    rest = path[len(folder_path) :]
    if store != folder_store or not path.startswith(folder_path) or not f"{rest}/".startswith("/"):
        return False
    segments = re.split(r"[/\\]", unquote(rest))
    is_plain = rest.isprintable() and not _AMBIGUOUS.search(rest)
    return is_plain and "." not in segments and ".." not in segments


def metadata_folder(location: str, properties: Mapping[str, str]) -> str:
    """Return `write.metadata.path`, else `<location>/metadata`."""
    return _folder(location, properties, "write.metadata.path", "metadata")


def data_folder(location: str, properties: Mapping[str, str]) -> str:
    """Return `write.data.path`, else `<location>/data`."""
    return _folder(location, properties, "write.data.path", "data")


def manifest_location(folder: str, commit_uuid: UUID, number: int) -> str:
    """Return the name of a commit's manifest, numbered from 0."""
    return f"{folder}/{commit_uuid}-m{number}.avro"


def manifest_list_location(folder: str, snapshot_id: int, attempt: int, commit_uuid: UUID) -> str:
    """Return the name of a snapshot's manifest list; attempts count from 1."""
    return f"{folder}/snap-{snapshot_id}-{attempt}-{commit_uuid}.avro"


def metadata_file_location(folder: str, version: int, uuid: UUID, *, gzip: bool = False) -> str:
    """Return the name of a metadata file; the first version of a table is 0."""
    return f"{folder}/{version:05d}-{uuid}{'.gz' if gzip else ''}.metadata.json"


def metadata_version(location: str) -> int:
    """Parse the version in a metadata file's name; -1 if it has none."""
    match = _VERSION.match(location[location.rfind("/") + 1 :])
    return int(match[1]) if match else -1


def version_in_name(name: str) -> int | None:
    """Parse `v<N>.metadata.json`, the metadata file of a file system table, in any codec's
    spelling; None for another name."""
    match = _FILE_SYSTEM_VERSION.fullmatch(name)
    return int(match[1]) if match else None


def data_file_location(
    location: str, properties: Mapping[str, str], partition_path: str, file_name: str
) -> str:
    """Return the location of a data file, in the layout of the table's properties. Folders of
    partitions whose names are too long are shortened."""
    folder = data_folder(location, properties)
    partition_path = shortened_path(partition_path)
    if properties.get("write.object-storage.enabled", "false").lower() == "true":
        partitioned = properties.get("write.object-storage.partitioned-paths", "true")
        return object_storage_location(
            folder,
            location,
            partition_path,
            file_name,
            partitioned_paths=partitioned.lower() == "true",
        )
    return "/".join(filter(None, (folder, partition_path, file_name)))


_FOLDER_BYTES_MAX = 255  # usual file systems
_PATH_BYTES_MAX = 512  # of the 1,024 of a key on S3 and GCS, and a path on ADLS
_FOLDER_BYTES_MIN = 48
_SHORTENED = re.compile(r"~[0-9a-f]{16}", re.ASCII)


def shortened_path(partition_path: str) -> str:
    """Return a partition's folders with names of at most 255 bytes each, and about 512 together.

    A longer one keeps its beginning, and ends with a hash of the whole, behind a tilde, which no
    escaped value has. Nothing reads values from the folders of a table's own files.
    """
    folders = partition_path.split("/")
    bytes_max = _FOLDER_BYTES_MAX
    if len(partition_path.encode()) > _PATH_BYTES_MAX:
        bytes_max = min(bytes_max, max(_FOLDER_BYTES_MIN, _PATH_BYTES_MAX // len(folders)))
    return "/".join(_shortened(folder, bytes_max) for folder in folders)


def _shortened(folder: str, bytes_max: int) -> str:
    encoded = folder.encode()
    if len(encoded) <= bytes_max:
        return folder
    mark = f"~{sha256(encoded).hexdigest()[:16]}"
    kept = encoded[: bytes_max - len(mark)].decode(errors="ignore")
    # Half of an escaped byte would be none.
    return re.sub(r"%[0-9A-F]?\Z", "", kept) + mark


def is_shortened(folder: str) -> bool:
    """Return whether a folder's name was shortened, and does not say the whole value."""
    return _SHORTENED.fullmatch(folder, max(0, len(folder) - 17)) is not None


def object_storage_location(
    folder: str,
    table_location: str,
    partition_path: str,
    file_name: str,
    *,
    partitioned_paths: bool = True,
) -> str:
    """Return a data file's location in the layout that spreads files by the hash of their name.

    Data outside the table's location gets the names of the table's last two folders behind the
    hash, so that tables that share the data folder stay apart. Without those and without partition
    paths the hash is joined to the file's name.
    """
    name = f"{partition_path}/{file_name}" if partition_path and partitioned_paths else file_name
    hashed = f"{folder}/{_hash_folders(name)}"
    if not folder.startswith(table_location.rstrip("/")):
        return f"{hashed}/{_context(table_location)}/{name}"
    return f"{hashed}/{name}" if partitioned_paths else f"{hashed}-{name}"


def _context(table_location: str) -> str:
    """Return `<parent folder>/<table folder>` of a table's location."""
    return "/".join(table_location.rstrip("/").split("/")[-2:])


def _hash_folders(name: str) -> str:
    """Return the low 20 bits of the name's hash in binary, as folders of 4, 4, 4 and 8 digits."""
    bits = f"{mmh3.hash(name.encode(), signed=False):032b}"[-_HASH_BITS:]
    return f"{bits[:4]}/{bits[4:8]}/{bits[8:12]}/{bits[12:]}"
