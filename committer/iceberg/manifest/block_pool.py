"""Gathers encoded manifest entries until they make a block of a good size. Nothing is decoded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from committer.iceberg.avro.codecs import DEFLATE_LEVEL, compress
from committer.iceberg.manifest.manifest_writer import BLOCK_BYTES

# A count of entries, and their compressed bytes.
EncodedBlock = tuple[int, bytes | memoryview]


class BlockPool:
    """Collects inflated entries; an entry compressed alone takes twice the space. `level`: of
    deflate."""

    def __init__(self, codec: str, *, level: int = DEFLATE_LEVEL) -> None:
        self._codec, self._level = codec, level
        self._raw: list[bytes] = []
        self._count = 0
        self._size = 0

    def add(self, count: int, raw: bytes) -> Iterator[EncodedBlock]:
        """Take over `count` entries; yields the block that they complete, if they do."""
        self._raw.append(raw)
        self._count += count
        self._size += len(raw)
        if self._size >= BLOCK_BYTES:
            yield from self.flush()

    def add_all(self, entries: Iterable[bytes]) -> Iterator[EncodedBlock]:
        """Take over entries, one by one."""
        for entry in entries:
            yield from self.add(1, entry)

    def flush(self) -> Iterator[EncodedBlock]:
        """Yield what is left, as a block."""
        if self._count:
            yield self._count, compress(self._codec, b"".join(self._raw), level=self._level)
            self._raw, self._count, self._size = [], 0, 0
