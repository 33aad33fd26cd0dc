"""Tables, vectors and answers of Apache Iceberg Java, unpacked from their archives on first use.

`operations.tar.xz`: its answers to operations; `conformance/operations/pack.py` packs it anew. All
else is of `fixtures.tar.xz`:

`java/` holds whole tables with what Iceberg Java says of each (`expected.json`), `vectors/` single
values, transforms, names and more; the READMEs inside say how each was made. Never edit them. The
archive is a plain tar of the two folders:
`tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -c java vectors | xz -9e`.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

ARCHIVE = Path(__file__).parents[2] / "fixtures.tar.xz"
OPERATIONS = Path(__file__).parents[2] / "operations.tar.xz"
CACHE = Path(__file__).parents[3] / ".cache"
# Every location inside the fixtures starts so.
LOCATION_PREFIX = "file:/tmp/frazil-fixtures/"


@cache
def fixtures_dir() -> Path:
    """Return the folder with `java` and `vectors`; unpack each content of the archive once."""
    return unpacked(ARCHIVE, CACHE)


@cache
def operations_dir() -> Path:
    """Return the folder with Java's answers to operations, and a README."""
    return unpacked(OPERATIONS, CACHE) / "operations"


def unpacked(archive: Path, cache_folder: Path) -> Path:
    """Unpack the archive below `cache_folder`, whole or not at all.

    Processes may race: each unpacks beside, the first rename wins.
    """
    folder = cache_folder / f"fixtures-{sha256(archive.read_bytes()).hexdigest()[:16]}"
    if folder.is_dir():
        return folder
    cache_folder.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=cache_folder))
    try:
        _unpack(archive, beside)
        beside.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return folder


def _unpack(archive: Path, folder: Path) -> None:
    """Unpack plain files and folders only, and nothing outside `folder`."""
    with tarfile.open(archive, "r:xz") as entries:
        for entry in entries:
            path = PurePosixPath(entry.name)
            if path.is_absolute() or ".." in path.parts:
                raise ValueError(f"{archive.name}: {entry.name} lies outside the archive")
            content = entries.extractfile(entry) if entry.isreg() else None
            if content is not None:
                target = folder / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content.read())
            elif not entry.isdir():
                raise ValueError(f"{archive.name}: {entry.name} is neither a file nor a folder")


def table_names() -> list[str]:
    """Return the names of all tables."""
    return sorted(path.parent.name for path in (fixtures_dir() / "java").glob("*/expected.json"))


def table_dir(name: str) -> Path:
    """Return the folder of one table."""
    return fixtures_dir() / "java" / name


def expected(name: str) -> dict[str, Any]:
    """Return Iceberg Java's findings in a table."""
    found: dict[str, Any] = json.loads((table_dir(name) / "expected.json").read_bytes())
    return found


def metadata_files() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every metadata file of every table, with the table's name."""
    for name in table_names():
        for document in metadata_files_of(name):
            yield name, document


def metadata_files_of(name: str) -> Iterator[dict[str, Any]]:
    """Yield every metadata file of one table."""
    for path in sorted(table_dir(name).rglob("*.metadata.json")):
        content = path.read_bytes()
        is_gzip = content.startswith(b"\x1f\x8b")
        yield json.loads(gzip.decompress(content) if is_gzip else content)


def vectors(name: str) -> dict[str, Any]:
    """Read one file of vectors: `what` explains its `cases`."""
    path = fixtures_dir() / "vectors" / f"{name}.json"
    found: dict[str, Any] = json.loads(path.read_bytes())
    return found


def read_bytes(location: str) -> bytes:
    """Read the file that a location inside the fixtures names."""
    if not location.startswith(LOCATION_PREFIX):
        raise ValueError(f"not a location of the fixtures: {location}")
    return (fixtures_dir() / "java" / location.removeprefix(LOCATION_PREFIX)).read_bytes()


def place_fixtures() -> None:
    """Put a link to the tables where their metadata says that they are: for readers that take no
    other names. Checkouts may race, with equal tables.
    """
    place = Path(LOCATION_PREFIX.removeprefix("file:").rstrip("/"))
    link = place.with_name(f"{place.name}.{os.getpid()}")
    link.unlink(missing_ok=True)
    link.symlink_to((fixtures_dir() / "java").resolve())
    link.replace(place)
