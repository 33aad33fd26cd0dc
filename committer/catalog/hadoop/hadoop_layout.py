"""Names and places of file system tables, in the layout of Java's HadoopCatalog. Pure.

`<warehouse>/<namespace levels>/<table>/metadata/v<N>.metadata.json`: the file with the highest
number is the table's current metadata. Source: docs/reference/file-system-tables.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from committer.catalog.namespaces import Namespace, join_namespace
from committer.errors import UnsupportedError
from committer.iceberg.metadata.metadata_gzip import writes_gzip
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.values.locations import comparable_location, version_in_name
from committer.request.table_identifier import TableIdentifier

HINT = "version-hint.text"
# An object that makes a namespace exist before it has a table. Java ignores files beside tables.
MARKER = ".frazil-namespace"
# In the order in which Java looks for a version; the last one is read, and written by no client.
_ENDINGS = (".metadata.json", ".gz.metadata.json", ".metadata.json.gz")
# A colon ends a scheme in Hadoop's paths, and a backslash is a slash in some of its forms.
_REFUSED = re.compile(r"[/\\:]")
_LEVEL_BYTES_MAX = 255
# Of the 1,024 bytes of a key on S3, with room for the warehouse and the files of a table.
_PATH_BYTES_MAX = 600


@dataclass(frozen=True, slots=True)
class Version:
    """The number of a metadata file, and its name, which says its codec."""

    number: int
    name: str


def version_name(number: int) -> str:
    """Return the name that Frazil writes: without gzip, which readers of the hint do not know."""
    return f"v{number}{_ENDINGS[0]}"


def current_version(names: Iterable[str]) -> Version | None:
    """Return the highest version of a folder's names, as Java picks one of several spellings."""
    found = [Version(number, name) for name in names if (number := version_in_name(name))]
    return max(found, key=lambda one: (one.number, -_rank(one.name)), default=None)


def _rank(name: str) -> int:
    ending = name[name.index(".") :]
    return _ENDINGS.index(ending)


def has_metadata(names: Iterable[str]) -> bool:
    """Return whether a table's metadata is in a folder of these names: any catalog's, as Java."""
    return any(name.endswith((".metadata.json", ".metadata.json.gz")) for name in names)


def namespace_folder(warehouse: str, namespace: Namespace) -> str:
    """Return the folder of a namespace. Errors: `UnsupportedError` for levels that name none."""
    join_namespace(namespace)
    return _folder(warehouse, namespace)


def table_folder(warehouse: str, identifier: TableIdentifier) -> str:
    """Return the folder of a table. Errors: `UnsupportedError` for a name that names none."""
    join_namespace(identifier.namespace)
    return _folder(warehouse, (*identifier.namespace, identifier.name))


def metadata_folder_of(folder: str) -> str:
    """Return where a table's versions are: no property moves them."""
    return f"{folder}/metadata"


def _folder(warehouse: str, levels: tuple[str, ...]) -> str:
    for level in levels:
        _check_level(level)
    path = "/".join(levels)
    if len(path.encode()) > _PATH_BYTES_MAX:
        raise UnsupportedError(
            f"the name `{path[:100]}…` has more than {_PATH_BYTES_MAX} bytes: no folder of a file"
            " system catalog can be called so"
        )
    return f"{warehouse}/{path}"


def _check_level(level: str) -> None:
    is_named = level and level.isprintable() and not level.startswith(".")
    if not is_named or _REFUSED.search(level) or len(level.encode()) > _LEVEL_BYTES_MAX:
        raise UnsupportedError(
            f"`{level[:100]}`: a table or level of a file system catalog is a folder; expected"
            f" printable characters without `/`, `\\` and `:`, no dot in front, and at most"
            f" {_LEVEL_BYTES_MAX} bytes"
        )


def check_layout(
    identifier: TableIdentifier,
    folder: str,
    metadata: TableMetadata,
    *,
    before: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Refuse metadata by which files of the table, or of its other writers, would lie elsewhere.

    `before`: the table's properties before a change. Errors: `UnsupportedError`.
    """
    if comparable_location(metadata.location) != comparable_location(folder):
        raise UnsupportedError(
            f"table {identifier}: its metadata says that it lies at `{metadata.location}`; a file"
            f" system catalog finds it by its folder, `{folder}`, and cannot move it"
        )
    for one in (before, metadata.properties):
        if path := one.get("write.metadata.path"):
            raise UnsupportedError(
                f"table {identifier}: `write.metadata.path` is `{path}`; the versions of a file"
                " system table are in its own folder: remove the property"
            )
        if writes_gzip(one):
            raise UnsupportedError(
                f"table {identifier}: `write.metadata.compression-codec` is `gzip`, by which two"
                " writers can both create one version, under two names: set it to `none`"
            )
