"""The steps of `frazil table add-files`: look at the files and the table, then publish a request.

The command makes the committer's own checks first, so that a mistake leaves nothing in quarantine.
The committer decides: it checks all of it again, on the table that its commit is conditional on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from committer.cli.context.command_session import require_branch
from committer.cli.output.printing import say
from committer.errors import InvalidMetadataError, InvalidRequestError, PublishError
from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.metadata.metadata_check import check_new_table
from committer.iceberg.metadata.snapshot import MAIN
from committer.iceberg.schema.name_mapping import (
    NAME_MAPPING_PROPERTY,
    create_name_mapping,
    print_name_mapping,
)
from committer.iceberg.schema.partition_spec import partition_path
from committer.iceberg.updates.metadata_update import SetProperties, Update
from committer.iceberg.values.locations import comparable_location
from committer.plan.batch.adopted_paths import adopt_locations, adopted_refusal, repeated_path
from committer.plan.batch.data_locations import AllowedPlaces
from committer.plan.batch.request_check import CheckBasis, Checker
from committer.plan.operations.live_files import AddedFiles
from committer.ports.pointer_swap import LoadedTable
from committer.ports.storage import ObjectInfo
from committer.request.attempt import timed_nonce
from committer.request.commit_request import Fingerprint, Producer
from committer.request.needs import Needs
from committer.request.receipt_model import Receipt
from committer.service.admin.live_file_search import find_live
from committer.service.admin.table_change import change_table
from committer.storage.disk.local_files import local_path
from committer.storage.scheme import scheme_of
from workers.adoption.adopt_file import Empty, Refused
from workers.adoption.adopter import adopt_files, find_files
from workers.adoption.adoption_target import AdoptionTarget
from workers.requests.publisher import Publisher, PublishPolicy
from workers.requests.table_cache import TableCache, opened
from workers.requests.written_epoch import WrittenEpoch

if TYPE_CHECKING:
    from committer.request.table_identifier import TableIdentifier
    from committer.service.process.composition import Parts

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_LOCAL_PREFIX = re.compile(r"(?:file:(?://)?)?(?=/(?!/))")
_SHOWN_MAX = 20


@dataclass(frozen=True, slots=True)
class PlannedAdoption:
    """The files that fit, and those that have no rows. `needs_mapping`: the table gets a name
    mapping first."""

    table: LoadedTable
    files: tuple[DataFile, ...]
    empty: tuple[Empty, ...]
    needs_mapping: bool

    mapping_property = NAME_MAPPING_PROPERTY

    @property
    def rows(self) -> int:
        return sum(file.record_count for file in self.files)

    def lines(self) -> Iterator[dict[str, object]]:
        """Yield what a dry run shows of each file."""
        metadata = self.table.metadata
        for file in self.files:
            yield {
                "file_path": file.file_path,
                "record_count": file.record_count,
                "file_size_in_bytes": file.file_size_in_bytes,
                "partition_path": partition_path(
                    metadata.default_spec, metadata.current_schema, file.partition
                ),
            }


class FileAdoption:
    """Adds files to one branch of a table: `plan`, `prepare`, `publish`."""

    def __init__(self, parts: Parts, identifier: TableIdentifier, branch: str = MAIN) -> None:
        self._parts = parts
        self._identifier = identifier
        self._branch = branch

    async def plan(self, paths: Sequence[str], *, allows_extra_columns: bool) -> PlannedAdoption:
        """Look at all files and at the table, and change nothing.

        Errors: `PublishError` for a table whose files no reader could read, and if one of the files
        cannot be added, after all of them were named;
        `NotFoundError` for a path with nothing; those of catalog and storage.
        """
        table = await self._parts.catalog.load(self._identifier)
        require_branch(table, self._branch, nothing="added")
        try:
            check_new_table(table.metadata)
        except InvalidMetadataError as error:
            raise PublishError(f"table {self._identifier}: {error}") from None
        objects = await self._find(paths, table)
        target = AdoptionTarget.of(table.metadata, allows_extra_columns=allows_extra_columns)
        found = await adopt_files(self._parts.storage, objects, target)
        files = tuple(one.file for one in found.adopted)
        self._refuse((*found.refused, *_misplaced(files, table)), len(objects))
        await self._refuse_live(files, table)
        await self._refuse_unfit(files, table)
        needs_mapping = not target.has_mapping and any(one.is_mapped for one in found.adopted)
        return PlannedAdoption(table, files, found.empty, needs_mapping)

    async def prepare(self, planned: PlannedAdoption) -> bool:
        """Give the table a name mapping if it needs one; return whether it got it."""
        is_set = False

        async def decide(table: LoadedTable) -> Sequence[Update]:
            nonlocal is_set
            if not planned.needs_mapping or NAME_MAPPING_PROPERTY in table.metadata.properties:
                return ()
            is_set = True
            mapping = create_name_mapping(table.metadata.current_schema)
            return (SetProperties({NAME_MAPPING_PROPERTY: print_name_mapping(mapping)}),)

        parts = self._parts
        if planned.needs_mapping:
            await change_table(parts.catalog, parts.storage, parts.world, self._identifier, decide)
        return is_set

    async def publish(self, planned: PlannedAdoption, *, timeout_s: float) -> Receipt:
        """Publish one request, and wait until it has landed. Errors: `PublishError`."""
        policy = PublishPolicy(wait="committed", wait_timeout_s=timeout_s)
        return await self._publisher().publish(self._written(planned.table, planned.files), policy)

    def _written(self, table: LoadedTable, files: Sequence[DataFile]) -> WrittenEpoch:
        world, metadata = self._parts.world, table.metadata
        return WrittenEpoch(
            identifier=self._identifier,
            table_uuid=metadata.require_uuid(),
            schema_id=metadata.current_schema_id,
            producer=Producer(id=f"add-files-{world.uuid()}", name="add-files", one_shot=True),
            epoch=0,
            nonce=timed_nonce(world.now_ms(), world.uuid()),
            fingerprint=_fingerprint(files),
            files=files,
            needs=Needs(on_conflict="fail"),
            branch=self._branch,
            adopt_existing=True,
        )

    def _publisher(self) -> Publisher:
        parts = self._parts
        return Publisher(
            catalog_name=parts.settings.catalog.name,
            tables=TableCache(
                open_catalog=opened(parts.catalog), storage=parts.storage, world=parts.world
            ),
            inbox=parts.inbox,
            quarantine=parts.quarantine,
            queue=parts.queue,
            world=parts.world,
            key_file=parts.key_file,
        )

    async def _find(self, paths: Sequence[str], table: LoadedTable) -> list[ObjectInfo]:
        """Find the files, each once. Errors: `PublishError`, `NotFoundError`."""
        found: list[ObjectInfo] = []
        for path in paths:
            location = location_of(path, table.metadata.location)
            _refuse_unnameable(location)
            found += await find_files(self._parts.storage, location)
        seen: dict[object, str] = {}
        for one in found:
            at = comparable_location(one.location)
            if at in seen:
                raise PublishError(f"{repeated_path(seen[at], one.location)}. Nothing was added")
            seen[at] = one.location
        return found

    def _refuse(self, refused: Sequence[Refused], count: int) -> None:
        """Name each file that does not fit. Errors: `PublishError` if there is one."""
        for one in refused[:_SHOWN_MAX]:
            say(one.location)
            for problem in one.problems:
                say(f"  {problem}")
        if len(refused) > _SHOWN_MAX:
            say(f"and {len(refused) - _SHOWN_MAX} files more")
        if refused:
            raise PublishError(
                f"{len(refused)} of {count} files cannot be added to table `{self._identifier}`;"
                " nothing was added"
            )

    async def _refuse_live(self, files: Sequence[DataFile], table: LoadedTable) -> None:
        """Refuse files that are on the branch. Errors: `PublishError`."""
        added = AddedFiles(
            table.metadata.default_spec_id,
            [file.file_path for file in files],
            tuple({file.partition for file in files}),
        )
        conflict = await find_live(self._parts.storage, table, self._branch, added)
        if conflict is not None:
            raise PublishError(f"table `{self._identifier}`: {conflict.message}. Nothing was added")

    async def _refuse_unfit(self, files: Sequence[DataFile], table: LoadedTable) -> None:
        """Refuse what the committer would put into quarantine, by its own check of the request.

        Errors: `PublishError`, after each file that is refused by itself was named.
        """
        problem = await self._problem(files, table) if files else None
        if problem is None:
            return
        each = [(file.file_path, await self._problem((file,), table)) for file in files]
        self._refuse([Refused(path, (why,)) for path, why in each if why is not None], len(files))
        raise PublishError(f"table `{self._identifier}`: {problem}. Nothing was added")

    async def _problem(self, files: Sequence[DataFile], table: LoadedTable) -> str | None:
        """Return why a request of these files would not be taken; None if it would.

        Errors: `PublishError` for one that is too large.
        """
        parts, metadata = self._parts, table.metadata
        key_chars_max = parts.catalog.capabilities.property_key_chars_max
        basis = CheckBasis.of(parts.settings.catalog.name, metadata, key_chars_max)
        sealed = await self._publisher().encode(metadata, self._written(table, files))
        try:
            Checker(basis, metadata.current_schema).check(sealed)
        except InvalidRequestError as error:
            return f"the committer would refuse it as {error.reason}: {error}"
        return None


def _refuse_unnameable(location: str) -> None:
    """Refuse a folder of this machine with a name that no location can hold: the storage leaves it
    out, with all files below it. Errors: `PublishError`.
    """
    if scheme_of(location) != "file":
        return
    for path in Path(local_path(location)).rglob("*"):
        try:
            path.name.encode()
        except UnicodeEncodeError as error:
            shown = ascii(str(path))[1:-1]
            raise PublishError(
                f"`{shown}`: its name is no UTF-8 text, so no table can name it. Rename it;"
                " nothing was added"
            ) from error


def location_of(path: str, table_location: str) -> str:
    """Return the location of a path; a bare one of this machine as the table spells its own."""
    if _SCHEME.match(path):
        return path
    local = _LOCAL_PREFIX.match(table_location)
    absolute = Path(path).absolute()
    return f"{local[0] if local else 'file://'}{absolute}"


def _misplaced(files: Sequence[DataFile], table: LoadedTable) -> list[Refused]:
    """Return the files that the committer would refuse for the place where they are."""
    metadata = table.metadata
    places, locations = AllowedPlaces.of(metadata), adopt_locations(metadata.properties)
    refusals = ((one.file_path, adopted_refusal(one.file_path, places, locations)) for one in files)
    return [Refused(path, (refusal,)) for path, refusal in refusals if refusal is not None]


def _fingerprint(files: Sequence[DataFile]) -> Fingerprint:
    """Return the identity of a list of files, whatever its order."""
    digest = blake2b(digest_size=16)
    for path in sorted(file.file_path for file in files):
        digest.update(path.encode() + b"\n")
    return Fingerprint(kind="file-list", value=digest.hexdigest())
