"""A table in an answer of a REST catalog: its location, its metadata, and what came with them.

An answer may name no metadata file (`metadata-location` is null, as for a staged table, or the
address of a page, as on some servers): then a digest of the metadata stands for the location, so
that it is another one whenever the table has changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import orjson

from committer.catalog.rest.client.rest_answer import Answer, texts_in
from committer.catalog.rest.client.rest_auth import is_header_text
from committer.errors import CatalogUnavailableError, InvalidMetadataError
from committer.iceberg.metadata.json_text import load_json
from committer.iceberg.metadata.table_metadata import (
    TableMetadata,
    parse_table_metadata_json,
    print_table_metadata,
)
from committer.ports.pointer_swap import DIGEST_PREFIX, LoadedTable
from committer.request.table_identifier import TableIdentifier

# A thousand snapshots take some ten milliseconds, which would block the event loop.
_READ_AT_ONCE_BYTES = 256 * 1024
_ETAG_CHARS_MAX = 1_024


@dataclass(frozen=True, slots=True)
class TableAnswer:
    """The answer to a load, a commit or a registration. `config` and `storage_credentials` are
    meant for readers of the table's files, and hold secrets.
    """

    table: LoadedTable
    config: Mapping[str, str] = field(default_factory=dict, repr=False)
    storage_credentials: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    etag: str = ""


async def read_table_answer(answer: Answer, identifier: TableIdentifier) -> TableAnswer:
    """Read the table of a success.

    Errors: `InvalidMetadataError`, `UnsupportedError` of the metadata; `CatalogUnavailableError`
    where the answer is no table at all.
    """
    if len(answer.content) < _READ_AT_ONCE_BYTES:
        return _read(answer, identifier)
    return await asyncio.to_thread(_read, answer, identifier)


def _read(answer: Answer, identifier: TableIdentifier) -> TableAnswer:
    found = answer.json()
    if not isinstance(found.get("metadata"), dict):
        raise CatalogUnavailableError(f"{answer.what}: the answer has no table metadata")
    location = _file_in(found)
    try:
        metadata = parse_table_metadata_json(found["metadata"])
        table = LoadedTable(identifier, metadata, location or _digest(metadata))
    except InvalidMetadataError as error:
        raise InvalidMetadataError(f"table {identifier}: {location}: {error}") from error
    credentials = found.get("storage-credentials")
    listed = credentials if isinstance(credentials, list) else []
    return TableAnswer(
        table,
        texts_in(found.get("config")),
        tuple(one for one in listed if isinstance(one, dict)),
        etag_in(answer),
    )


def etag_in(answer: Answer) -> str:
    """Return the ETag of an answer; empty where it has none that can be sent back."""
    etag = answer.headers.get("etag", "")
    return etag if len(etag) <= _ETAG_CHARS_MAX and is_header_text(etag) else ""


async def read_location(answer: Answer) -> str | None:
    """Return the metadata file that an answer with a table names; None where it names none."""
    if len(answer.content) < _READ_AT_ONCE_BYTES:
        return location_in(answer)
    return await asyncio.to_thread(location_in, answer)


def location_in(answer: Answer) -> str | None:
    """Return the metadata file that an answer names; None where it names none."""
    return _file_in(answer.json())


def _file_in(found: Mapping[str, Any]) -> str | None:
    location = found.get("metadata-location")
    if not isinstance(location, str) or location.startswith(("http:", "https:")):
        return None
    return location or None


def _digest(metadata: TableMetadata) -> str:
    content = orjson.dumps(load_json(print_table_metadata(metadata)), option=orjson.OPT_SORT_KEYS)
    return f"{DIGEST_PREFIX}{blake2b(content, digest_size=16).hexdigest()}"
