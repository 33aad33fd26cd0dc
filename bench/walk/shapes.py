"""Manifests that differ in nothing but the maps of metrics of their entries."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from typing import Any

import fastavro

from bench.format import tables
from bench.format.fastavro_peer import record_of
from committer.iceberg.avro.container import read_header
from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.manifest.manifest_writer import encode_additions

_TEXTS = (2, 14, 15, 16, 17, 18)
_MAPS = (
    "column_sizes",
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "lower_bounds",
    "upper_bounds",
)
_LATIN, _HAN, _MIXED = "abcdefghijklmnoéüñ", tuple(map(chr, range(0x4E00, 0x9F00))), "éüñ漢字𝄞abc"

Change = Callable[[DataFile, random.Random], DataFile]


def _texts(letters: Sequence[str], least: int, most: int) -> Change:
    """Return a change to texts of so many letters, drawn anew for each bound."""

    def change(file: DataFile, chance: random.Random) -> DataFile:
        def bounds(given: Mapping[int, bytes] | None) -> dict[int, bytes]:
            texts = {
                column: "".join(chance.choices(letters, k=chance.randint(least, most))).encode()
                for column in _TEXTS
            }
            return {**(given or {}), **texts}

        return replace(
            file, lower_bounds=bounds(file.lower_bounds), upper_bounds=bounds(file.upper_bounds)
        )

    return change


def _in_any_order(file: DataFile, chance: random.Random) -> DataFile:
    def shuffled(name: str) -> dict[int, Any]:
        pairs = list(getattr(file, name).items())
        chance.shuffle(pairs)
        return dict(pairs)

    changes: dict[str, Any] = {name: shuffled(name) for name in _MAPS}
    return replace(file, **changes)


def _without_some(file: DataFile, chance: random.Random) -> DataFile:
    """Drop one in ten values of each column but the first ones."""
    kept = {column for column in range(1, 21) if column < 3 or chance.random() > 0.1}

    def some(given: Mapping[int, bytes] | None) -> dict[int, bytes]:
        return {column: bound for column, bound in (given or {}).items() if column in kept}

    return replace(file, lower_bounds=some(file.lower_bounds), upper_bounds=some(file.upper_bounds))


def _both(*changes: Change) -> Change:
    def change(file: DataFile, chance: random.Random) -> DataFile:
        for one in changes:
            file = one(file, chance)
        return file

    return change


_ASCII_TEXTS = _texts("abcdefghijk", 3, 12)
CHANGES: Mapping[str, Change] = {
    "texts of one length": lambda file, _: file,
    "of one length, Latin beyond ASCII": _texts("éüñ", 6, 6),
    "of one length, Han": _texts(_HAN, 4, 4),
    "texts of 3 to 12 letters": _ASCII_TEXTS,
    "of 3 to 12, Latin": _texts(_LATIN, 3, 12),
    "of 3 to 12, Han": _texts(_HAN, 3, 12),
    "of 3 to 12, mixed scripts": _texts(_MIXED, 3, 12),
    "of 16 to 60": _texts("abcdefghijk", 16, 60),
    "of 50 to 90": _texts("abcdefghijk", 50, 90),
    "some columns without bounds": _both(_ASCII_TEXTS, _without_some),
    "columns in any order": _in_any_order,
    "in any order, texts of 3 to 12": _both(_ASCII_TEXTS, _in_any_order),
    "in any order, mixed scripts": _both(_texts(_MIXED, 3, 12), _in_any_order),
}


def manifests(name: str, count: int, files: int, *, is_plain: bool) -> Iterator[bytes]:
    """Yield manifests of so many entries in all, so many `files` each. Plain: maps do not state
    their sizes, as other writers write them, and blocks are not compressed.
    """
    chance, change = random.Random(1), CHANGES[name]
    changed = [change(file, chance) for file in tables.files(count)]
    for start in range(0, count, files):
        some = changed[start : start + files]
        content = encode_additions(some, tables.context(), sync=tables.SYNC).content
        yield _plain(content, some) if is_plain else content


def _plain(content: bytes, files: Sequence[DataFile]) -> bytes:
    metadata = read_header(content).metadata
    schema = fastavro.parse_schema(json.loads(metadata["avro.schema"]))
    kept = {key: each.decode() for key, each in metadata.items() if not key.startswith("avro.")}
    out = BytesIO()
    fastavro.writer(out, schema, map(record_of, files), metadata=kept, sync_interval=65_536)
    return out.getvalue()
