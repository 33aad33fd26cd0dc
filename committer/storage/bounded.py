"""Bounds the files of tables that are read whole, so that one table cannot take the memory of all.

A metadata file, a manifest list or a manifest becomes five to ten times its bytes as objects, and a
few bytes of it may inflate to very many. So each kind has a limit, by its bytes without
compression. A file beyond it is not read where its stored size is enough to tell, and never decoded
otherwise: its table stops, and the others go on. A table's own next files have the same limits: a
committer does not write what it could not read after its next start.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from committer.errors import InvalidMetadataError, ObjectTooLargeError, UnsupportedError
from committer.iceberg.avro.container import MAGIC, Header, inflated_bytes, read_header
from committer.iceberg.metadata.metadata_gzip import GZIP_MAGIC, unzipped_bytes
from committer.ports.skips import Skips
from committer.ports.storage import NewObject, ObjectInfo, Storage
from committer.storage.routed import RoutedStorage

T = TypeVar("T")

_METADATA_ENDINGS = (".json", ".json.gz")
# Field ids that every row of a manifest list, and every entry of a manifest, has.
_OF_LIST, _OF_MANIFEST = frozenset((500, 501)), frozenset((0, 2))
# Deflate makes no more of a byte. Files of ours, whose entries differ, never come near the second.
_INFLATION_MAX = 1032
_OWN_INFLATION_MAX = 16


@dataclass(frozen=True, slots=True)
class ReadLimit:
    """The most bytes of one kind of file, without compression. `advice`: what to do beyond it."""

    bytes_max: int
    advice: str = ""

    def require(self, location: str, content: bytes, plain_bytes: int = 0) -> None:
        """Refuse a file of so many bytes without compression. Errors: `ObjectTooLargeError`."""
        for size_bytes, inflates in ((len(content), False), (plain_bytes, True)):
            if size_bytes > self.bytes_max:
                raise ObjectTooLargeError(
                    location, len(content), self.bytes_max, inflates=inflates, advice=self.advice
                )


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """The limits of the files of a table."""

    metadata: ReadLimit
    manifest_list: ReadLimit
    manifest: ReadLimit

    def by_name(self, location: str) -> ReadLimit:
        """Return the limit of an object that was not read yet. Any name may be that of a manifest,
        and lists have no names of their own."""
        if location.endswith(_METADATA_ENDINGS):
            return self.metadata
        return max(self.manifest_list, self.manifest, key=lambda one: one.bytes_max)

    def of_avro(self, header: Header) -> ReadLimit | None:
        """Return the limit of an Avro file; None for one that is none of a table's own."""
        schema = header.schema_json
        fields = schema.get("fields") if isinstance(schema, dict) else None
        named = fields if isinstance(fields, list) else []
        ids = {field.get("field-id") for field in named if isinstance(field, dict)}
        if ids >= _OF_LIST:
            return self.manifest_list
        return self.manifest if ids >= _OF_MANIFEST else None


class BoundedStorage(RoutedStorage):
    """The `Storage` port around `inner`, for the files of tables. Parts of objects, and objects
    that their reader bounds itself, are read as they are.
    """

    def __init__(self, inner: Storage, limits: ReadLimits) -> None:
        self.inner = inner
        self._limits = limits
        of_kinds = limits.metadata, limits.manifest_list, limits.manifest
        self._smallest_limit_bytes = min(limit.bytes_max for limit in of_kinds)

    async def get(
        self,
        location: str,
        *,
        offset: int = 0,
        length: int | None = None,
        size_bytes_max: int | None = None,
    ) -> bytes:
        if length is not None or size_bytes_max is not None:
            return await self.inner.get(
                location, offset=offset, length=length, size_bytes_max=size_bytes_max
            )
        limit = self._limits.by_name(location)
        try:
            content = await self.inner.get(location, offset=offset, size_bytes_max=limit.bytes_max)
        except ObjectTooLargeError as error:
            raise ObjectTooLargeError(
                location, error.size_bytes, limit.bytes_max, advice=limit.advice
            ) from error
        if not offset:
            await self._require(location, content, _INFLATION_MAX)
        return content

    async def create(self, objects: Sequence[NewObject]) -> None:
        for one in objects:
            await self._require(one.location, one.content, _OWN_INFLATION_MAX)
        await self.inner.create(objects)

    async def _require(self, location: str, content: bytes, inflation_max: int) -> None:
        """Refuse a file that is too large. `inflation_max`: how many times as large as it is stored
        it can be."""
        if len(content) * inflation_max <= self._smallest_limit_bytes:
            return
        limit, header = self._limits.by_name(location), None
        limit.require(location, content)
        if content.startswith(MAGIC):
            header = _header(content)
            of_avro = None if header is None else self._limits.of_avro(header)
            if of_avro is None:
                return
            limit = of_avro
        elif not content.startswith(GZIP_MAGIC):
            return
        if len(content) * inflation_max > limit.bytes_max:
            plain = await asyncio.to_thread(_plain_bytes, content, header, limit.bytes_max)
            limit.require(location, content, plain)

    async def delete(self, locations: Sequence[str]) -> None:
        await self.inner.delete(locations)

    async def list(self, prefix: str, *, skips: Skips | None = None) -> AsyncIterator[ObjectInfo]:
        async for info in self.inner.list(prefix, skips=skips):
            yield info

    async def close(self) -> None:
        await self.inner.close()

    async def _call(self, location: str, act: Callable[[Storage], Awaitable[T]]) -> T:
        return await act(self.inner)


def _header(content: bytes) -> Header | None:
    """Return the header of an Avro file; None where it is damaged, as its reader says."""
    try:
        return read_header(content)
    except InvalidMetadataError:
        return None


def _plain_bytes(content: bytes, header: Header | None, bytes_max: int) -> int:
    """Return the size without compression. A file that is damaged is left to its reader, which says
    what is wrong with it."""
    if header is None:
        return unzipped_bytes(content, bytes_max) if content.startswith(GZIP_MAGIC) else 0
    try:
        return inflated_bytes(content, header, bytes_max)
    except (InvalidMetadataError, UnsupportedError):
        return 0
