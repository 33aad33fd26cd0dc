"""The orphans of a table: their minimum age, and the report on them. No printing here."""

from __future__ import annotations

from dataclasses import dataclass, field

from committer.cli.output.describe import Description
from committer.errors import UnsupportedError
from committer.plan.cleanup.orphan_search import SearchScope
from committer.ports.world import World
from committer.request.table_identifier import TableIdentifier
from committer.service.admin.orphan_finder import REMOVED_AT_ONCE, Orphan, OrphanFinder, Sources
from committer.service.process.composition import Parts


@dataclass(frozen=True, slots=True)
class Wanted:
    """The request of a command. `by_storage`: ages are by the storage's clock, which is read by
    writing an object.
    """

    identifier: TableIdentifier
    age_ms: int
    outside: bool
    by_storage: bool

    async def now_ms(self, search: OrphanFinder, world: World) -> int:
        return await search.storage_now_ms() if self.by_storage else world.now_ms()

    def before_ms(self, now_ms: int) -> int:
        return now_ms - self.age_ms


@dataclass(slots=True)
class Total:
    """Objects and bytes of one kind."""

    objects: int = 0
    size_bytes: int = 0

    def add(self, orphan: Orphan) -> None:
        self.objects += 1
        self.size_bytes += orphan.size_bytes


@dataclass(slots=True)
class Report:
    """The findings: totals of removable files, by kind, and of those that stay."""

    now_ms: int
    removable: dict[str, Total] = field(default_factory=dict)
    staying: Total = field(default_factory=Total)

    def add(self, orphan: Orphan, *, outside: bool) -> None:
        if is_meant(orphan, outside=outside):
            self.removable.setdefault(orphan.kind.value, Total()).add(orphan)
        else:
            self.staying.add(orphan)

    @property
    def objects(self) -> int:
        return sum(total.objects for total in self.removable.values())


def is_meant(orphan: Orphan, *, outside: bool) -> bool:
    """Return whether a removal would delete it."""
    return orphan.why_it_stays is None and (outside or not orphan.is_outside)


def _sources(parts: Parts) -> Sources:
    return Sources(
        parts.catalog,
        parts.storage,
        parts.replays,
        parts.journal,
        parts.high_water_marks,
        parts.world,
        parts.settings.inbox,
    )


async def open_search(
    parts: Parts, identifier: TableIdentifier
) -> tuple[OrphanFinder, SearchScope]:
    """Open a search that has read what names files, and where it looks.
    Errors: those of the search."""
    can = parts.catalog.capabilities
    if can.maintains_tables:
        raise UnsupportedError(
            f"{identifier}: the service behind a catalog of the kind {can.kind} removes orphan"
            " files itself, so none are looked for"
        )
    search = await OrphanFinder.of(_sources(parts), identifier)
    ground = await search.look_around()
    if not ground.folders:
        raise UnsupportedError(
            f"the folders of {identifier} are another table's too, or the inbox's: it cannot be"
            f" known whose files are in {', '.join(ground.shared)}"
        )
    await search.refresh()
    return search, ground


async def remove_orphans(parts: Parts, wanted: Wanted) -> int:
    """Delete group after group, and return how many were deleted.

    Errors: `UnsupportedError` where nothing may be removed, or no more.
    """
    search, _ = await open_search(parts, wanted.identifier)
    before_ms = wanted.before_ms(await wanted.now_ms(search, parts.world))
    removed, batch = 0, []
    async for orphan in search.find(before_ms=before_ms):
        if is_meant(orphan, outside=wanted.outside):
            batch.append(orphan)
        if len(batch) == REMOVED_AT_ONCE:
            removed += len(await search.remove(batch))
            batch = []
    return removed + len(await search.remove(batch))


def describe(orphan: Orphan, now_ms: int) -> Description:
    """Describe an orphan for programs. Ages follow the clock of the report."""
    return {
        "location": orphan.location,
        "kind": orphan.kind.value,
        "size-bytes": orphan.size_bytes,
        "modified-ms": orphan.modified_ms,
        "age-s": max(0, now_ms - orphan.modified_ms) // 1000,
        "outside": orphan.is_outside,
        "stays": orphan.why_it_stays,
    }
