"""Finds Parquet files in a storage and describes them, several at once, mostly by one read each."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from committer.errors import InvalidMetadataError, NotFoundError, UnsupportedError
from committer.ports.storage import ObjectInfo, Storage
from workers.adoption.adopt_file import Adopted, Empty, Refused, adopt_file
from workers.adoption.adoption_target import AdoptionTarget
from workers.adoption.footer import read_footer

READS_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Adoption:
    """The outcome of an adoption, by file."""

    adopted: tuple[Adopted, ...]
    empty: tuple[Empty, ...]
    refused: tuple[Refused, ...]


async def find_files(storage: Storage, path: str) -> list[ObjectInfo]:
    """Return the file at a location, or all below a folder but hidden ones.

    Hidden is what Spark and Hive hide: a file or folder whose name begins with a dot, or with an
    underscore and has no value (`_SUCCESS`). Errors: `NotFoundError` where there is nothing; those
    of the storage.
    """
    try:
        return [await storage.head(path)]
    except NotFoundError:
        folder = path.rstrip("/")
        listed = storage.list(folder)
        found = [one async for one in listed if not _is_hidden(one.location[len(folder) :])]
    if not found:
        raise NotFoundError(f"`{path}`: expected a file, or a folder with files; found none")
    return found


def _is_hidden(below: str) -> bool:
    parts = below.strip("/").split("/")
    return any(part.startswith(".") or (part.startswith("_") and "=" not in part) for part in parts)


async def adopt_files(
    storage: Storage, objects: Sequence[ObjectInfo], target: AdoptionTarget
) -> Adoption:
    """Read the footers of all. Errors: `AccessError` and `TransientError` of the storage."""
    outcomes: list[Adopted | Empty | Refused] = []
    for start in range(0, len(objects), READS_AT_ONCE):
        some = objects[start : start + READS_AT_ONCE]
        outcomes += await asyncio.gather(*(_outcome(storage, one, target) for one in some))
    return Adoption(
        tuple(one for one in outcomes if isinstance(one, Adopted)),
        tuple(one for one in outcomes if isinstance(one, Empty)),
        tuple(one for one in outcomes if isinstance(one, Refused)),
    )


async def _outcome(
    storage: Storage, found: ObjectInfo, target: AdoptionTarget
) -> Adopted | Empty | Refused:
    try:
        footer = await read_footer(storage, found.location, found.size_bytes)
    except (InvalidMetadataError, UnsupportedError) as error:
        return Refused(found.location, (str(error),))
    except NotFoundError:
        return Refused(found.location, ("it was deleted while it was looked at",))
    return adopt_file(found.location, found.size_bytes, footer, target)
