"""Names and locations of S3 Tables. Pure.

The service chooses the location of a table and takes metadata files below it only, whose names end
`.metadata.json`. It reads gzip under a name of its own. So a metadata file is always in the folder
`metadata` of the table and never compressed, whatever the table's properties say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from committer.catalog.namespaces import Namespace, join_namespace
from committer.errors import SettingsError, UnsupportedError
from committer.ports.pointer_swap import LoadedTable, Swap
from committer.request.table_identifier import TableIdentifier

_NAME = re.compile(r"[0-9a-z_]{1,255}")
_BUCKET = re.compile(r"arn:aws[-a-z0-9]*:s3tables:([-a-z0-9]+):[0-9]{12}:bucket/[a-z0-9_-]{3,63}")
_ENDING = ".metadata.json"
_GZIP_ENDING = f".gz{_ENDING}"


@dataclass(frozen=True, slots=True)
class TablePointer:
    """The service's description of a table. `location` is empty while it has no metadata."""

    location: str
    warehouse: str
    token: str


def region_of(warehouse: str) -> str:
    """Return the region of the table bucket. Errors: `SettingsError` where it is none."""
    if bucket := _BUCKET.fullmatch(warehouse):
        return bucket[1]
    raise SettingsError(
        f"`warehouse` {warehouse or 'is empty'}: expected the ARN of a table bucket,"
        " arn:aws:s3tables:REGION:ACCOUNT:bucket/NAME"
    )


def is_name(text: str) -> bool:
    """Return whether a namespace or a table can be called so."""
    return bool(_NAME.fullmatch(text))


def namespace_name(namespace: Namespace) -> str:
    """Return the name of a namespace. Errors: `UnsupportedError` for one that none can have."""
    text = join_namespace(namespace)
    if not is_name(text):
        raise UnsupportedError(
            f"namespace `{text}`: S3 Tables has no levels of namespaces; expected one name of up to"
            " 255 lower-case letters, digits and `_`"
        )
    return text


def table_name(identifier: TableIdentifier) -> tuple[str, str]:
    """Return the names of a table's namespace and of the table. Errors: as `namespace_name`."""
    namespace = namespace_name(identifier.namespace)
    if not is_name(identifier.name):
        raise UnsupportedError(
            f"table `{identifier}`: S3 Tables expects a name of up to 255 lower-case letters,"
            " digits and `_`"
        )
    return namespace, identifier.name


def placed_table(table: LoadedTable, warehouse: str) -> LoadedTable:
    """Return a new table at the location that the service has chosen for it."""
    metadata = replace(table.metadata, location=warehouse.rstrip("/"))
    return LoadedTable(
        table.identifier, metadata, _metadata_file(metadata.location, table.metadata_location)
    )


def placed_swap(swap: Swap) -> Swap:
    """Return the swap with a metadata file that the service takes."""
    return replace(
        swap, metadata_location=_metadata_file(swap.metadata.location, swap.metadata_location)
    )


def _metadata_file(location: str, named: str) -> str:
    name = named.rpartition("/")[2]
    if name.endswith(_GZIP_ENDING):
        name = name.removesuffix(_GZIP_ENDING) + _ENDING
    return f"{location}/metadata/{name}"
