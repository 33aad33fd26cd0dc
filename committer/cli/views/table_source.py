"""Opens a table for a reading command: from the catalog, or from a metadata file alone.

`open_table` returns the same for both: metadata, and the bytes of the files that it names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from committer.cli.context.command_session import (
    named_owner,
    parse_identifier,
    read_settings,
    usage_error,
)
from committer.cli.context.common_options import complete_table
from committer.errors import FrazilError

if TYPE_CHECKING:
    from committer.iceberg.metadata.snapshot import Snapshot
    from committer.iceberg.metadata.table_metadata import TableMetadata
    from committer.request.table_identifier import TableIdentifier
    from committer.table_reader import TableReader


@dataclass(frozen=True, slots=True)
class TablePlace:
    """The options of a command that reads a table; exactly one of the first two is given."""

    name: Annotated[
        str | None,
        typer.Argument(
            metavar="TABLE", help="The table: db.flights.", autocompletion=complete_table
        ),
    ] = None
    metadata: Annotated[
        str | None,
        typer.Option(
            "--metadata", metavar="FILE", help="This metadata file instead of a catalog's table."
        ),
    ] = None
    moves: Annotated[
        list[str] | None,
        typer.Option(
            "--rewrite-prefix",
            metavar="OLD=NEW",
            help="Read below NEW what the metadata names below OLD; may be repeated.",
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class SnapshotChoice:
    """The options that name a snapshot: one of them, or none for the current one."""

    snapshot: Annotated[
        int | None,
        typer.Option("--snapshot", metavar="ID", help="Of this snapshot, not the current."),
    ] = None
    ref: Annotated[
        str | None, typer.Option("--ref", metavar="NAME", help="Of this branch or tag.")
    ] = None
    as_of: Annotated[
        str | None,
        typer.Option(
            "--as-of",
            metavar="TIME",
            help="As it was at this time: 2026-05-01T12:00:00 (UTC if no zone is given), or"
            " milliseconds since 1970.",
        ),
    ] = None

    @property
    def as_of_ms(self) -> int | None:
        return None if self.as_of is None else parse_time_ms(self.as_of, "--as-of")

    def find(self, metadata: TableMetadata) -> Snapshot | None:
        """Return the snapshot; None where the table has none.

        Errors: `typer.BadParameter` for two options; `NotFoundError`.
        """
        from committer.iceberg.scan.time_travel import find_snapshot

        if [self.snapshot, self.ref, self.as_of].count(None) < 2:
            raise typer.BadParameter(
                "expected at most one of --snapshot, --ref and --as-of, found several"
            )
        return find_snapshot(
            metadata, snapshot_id=self.snapshot, ref=self.ref, as_of_ms=self.as_of_ms
        )


Read = Callable[[str], bytes]
# A prefix of locations in the metadata and its replacement; neither ends with a slash.
_Move = tuple[str, str]


@dataclass(frozen=True, slots=True)
class OpenTable:
    """A table that can be read. `identifier` is None for a bare metadata file.

    `read` takes a location as the metadata spells it. Errors of it: `NotFoundError`,
    `AccessError`, `StorageUnavailableError`, `SettingsError`.
    """

    identifier: TableIdentifier | None
    metadata_location: str
    metadata: TableMetadata
    read: Read


@contextmanager
def open_table(place: TablePlace) -> Iterator[OpenTable]:
    """Open what the options name, for as long as the block runs.

    Errors: `typer.BadParameter` for neither or both of table and metadata file, and for a move that
    is not `OLD=NEW`; those of the catalog and the storage.
    """
    if (place.name is None) == (place.metadata is None):
        raise typer.BadParameter("expected the name of a table, or --metadata FILE")
    parsed = [_parse_move(text) for text in place.moves or ()]
    with ExitStack() as stack:
        if place.name is not None:
            yield _open_catalog_table(stack, place.name, parsed)
        elif place.metadata is not None:
            yield _open_file(stack, place.metadata, parsed)


def _open_catalog_table(stack: ExitStack, name: str, moves: Sequence[_Move]) -> OpenTable:
    from committer.table_reader import open_reader

    identifier, settings = parse_identifier(name), read_settings()
    stack.enter_context(named_owner(settings))
    reader = stack.enter_context(open_reader(settings.catalog.all_properties))
    loaded, read = reader.load(identifier), _moving(reader.read, moves)
    return OpenTable(identifier, loaded.metadata_location, loaded.metadata, read)


def _open_file(stack: ExitStack, file: str, moves: Sequence[_Move]) -> OpenTable:
    """Open a metadata file; settings are read only for one that does not lie on this machine."""
    from committer.iceberg.metadata.table_metadata import parse_table_metadata

    read = _file_reader(stack)
    location = _location(file)
    try:
        parsed = parse_table_metadata(read(location))
    except FrazilError as error:
        raise type(error)(f"{file}: {error}") from error
    written = _moved(location, [(new, old) for old, new in moves])
    return OpenTable(None, written, parsed, _moving(read, moves))


def _file_reader(stack: ExitStack) -> Read:
    """Return a reader of local files, and of others by a reader that is opened for the first."""
    from committer.storage.disk import local_files
    from committer.storage.scheme import scheme_of

    @cache
    def reader() -> TableReader:
        from committer.table_reader import open_reader

        return stack.enter_context(open_reader(read_settings().catalog.all_properties))

    def read(location: str) -> bytes:
        is_local = scheme_of(location) == "file"
        return local_files.read(location, 0, None) if is_local else reader().read(location)

    return read


# --- Locations that have moved -------------------------------------------------------------------


def _parse_move(text: str) -> _Move:
    old, sign, new = text.partition("=")
    if not sign or not old or not new:
        raise typer.BadParameter(f"`{text}`: expected OLD=NEW", param_hint="--rewrite-prefix")
    return old.rstrip("/"), _location(new).rstrip("/")


def _moving(read: Read, moves: Sequence[_Move]) -> Read:
    """Return a function that reads files below an old prefix at the new one;
    the longest old prefix counts."""
    longest_first = sorted(moves, key=lambda move: -len(move[0]))
    return lambda location: read(_moved(location, longest_first))


def _moved(location: str, moves: Iterable[_Move]) -> str:
    """Move the location by the first prefix that it is below, if there is one: whole parts of the
    path count.
    """
    for old, new in moves:
        rest = location.removeprefix(old)
        if location.startswith(old) and rest[:1] in ("", "/"):
            return new + rest
    return location


def _location(text: str) -> str:
    """Return a location as it is; a path of this machine made absolute, and without `file:`."""
    if text.lower().startswith("file:"):
        from committer.storage.disk.local_files import local_name

        return local_name(text)
    return text if "://" in text else str(Path(text).absolute())


# --- Times ---------------------------------------------------------------------------------------


def parse_time_ms(text: str, option: str) -> int:
    """Parse the time that an option gives to milliseconds since 1970.
    Errors: `typer.BadParameter`.
    """
    from committer.iceberg.values.calendar import read_time_ms

    with usage_error(option):
        return read_time_ms(text)
