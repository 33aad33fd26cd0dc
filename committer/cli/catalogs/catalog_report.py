"""Probes of the configured catalog and its storages, and the report on them. No printing here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from committer.cli.output.describe import Description
from committer.errors import FrazilError
from committer.settings.setting_names import naming_setting
from committer.storage.scheme import scheme_of

if TYPE_CHECKING:
    from committer.ports.catalog import Catalog
    from committer.ports.catalog_capabilities import CatalogCapabilities
    from committer.service.process.composition import RequestParts
    from committer.settings.service_settings import Settings

NOT_TRIED = "creating, renaming and dropping a table (they would leave something behind)"


@dataclass(frozen=True, slots=True)
class Check:
    """One probe. `error`: why it failed, in a sentence; None if it passed."""

    name: str
    meaning: str
    error: str | None


@dataclass(slots=True)
class CatalogReport:
    """The findings. `capabilities` is None where the catalog could not be opened."""

    checks: list[Check] = field(default_factory=list)
    capabilities: CatalogCapabilities | None = None

    @property
    def failed(self) -> list[Check]:
        return [check for check in self.checks if check.error is not None]

    def has_passed(self, name: str) -> bool:
        return any(check.name == name and check.error is None for check in self.checks)

    async def try_(
        self, name: str, meaning: str, work: Callable[[], Awaitable[object]], *, setting: str
    ) -> bool:
        """Run a probe and note how it ended. Other errors than Frazil's own are bugs: they rise."""
        try:
            await work()
        except FrazilError as error:
            self.checks.append(Check(name, meaning, naming_setting(setting, error)))
            return False
        self.checks.append(Check(name, meaning, None))
        return True


async def check_catalog(parts: RequestParts) -> CatalogReport:
    """Try what a committer needs. Everything that is written for a probe is removed again, and a
    missing catalog is not made.
    """
    from committer.service.process.composition import open_catalog

    report = CatalogReport()
    opened: list[Catalog] = []
    address = f"catalog.{parts.settings.catalog.all_properties.address}"

    async def open_() -> None:
        opened.append(await open_catalog(parts, create=False))

    await report.try_("open", "connect, and read the layout", open_, setting=address)
    for catalog in opened:
        try:
            await _check_opened(report, catalog, setting=address)
        finally:
            await catalog.close()
    for setting, place in _places(parts.settings):
        await report.try_(
            setting,
            f"create, replace, read, list and delete below {place}",
            partial(parts.storage.probe, _existing(place)),
            setting=setting,
        )
    return report


async def _check_opened(report: CatalogReport, catalog: Catalog, *, setting: str) -> None:
    report.capabilities = catalog.capabilities
    reads = "list the namespaces"
    if await report.try_("read", reads, catalog.list_namespaces, setting=setting):
        swaps = "swap a pointer, and lose with a stale base"
        await report.try_("swap", swaps, catalog.probe, setting=setting)


def _places(settings: Settings) -> tuple[tuple[str, str], ...]:
    places = (
        ("catalog.warehouse", settings.catalog.all_properties.place),
        ("inbox", settings.inbox),
    )
    return tuple(one for one in places if one[1])


def _existing(place: str) -> str:
    """Return the folder to probe for a place: of local folders the nearest one that is there, so
    that the probe leaves no empty folder behind.
    """
    if scheme_of(place) != "file":
        return place
    path = Path(place.removeprefix("file://"))
    return str(next((one for one in (path, *path.parents) if one.is_dir()), path))


# --- What a catalog can do -----------------------------------------------------------------------


def describe_abilities(report: CatalogReport) -> dict[str, str]:
    """Describe the abilities for people, each by a sentence's end."""
    can = report.capabilities
    if can is None:
        return {}
    on = {"pointer": "on the pointer", "requirements": "on what a commit requires"}[can.condition]
    return {
        "kind": can.kind,
        "conditional swap": f"proven, {on}" if report.has_passed("swap") else "NOT PROVEN",
        "metadata files are written by": f"the {can.metadata_writer}",
        "several snapshots in one swap": _yes(can.has_several_snapshots),
        "several tables in one swap": _tables(can),
        "atomic rename": _yes(can.has_atomic_rename),
        "register a metadata file": _yes(can.registers_tables),
        "drop a table and keep its files": _yes(can.drops_pointer_only),
        "tables are placed by": "the catalog" if can.chooses_locations else "the committer",
        "upkeep is done by": "the catalog" if can.maintains_tables else "the committer",
        "properties of namespaces": _yes(can.has_namespace_properties),
        "levels of a namespace": _most(can.namespace_levels_max),
        "characters of a table property's name": _most(can.property_key_chars_max),
    }


def describe_report(report: CatalogReport, settings: Settings) -> Description:
    """Describe the report for programs."""
    from dataclasses import asdict

    properties = settings.catalog.all_properties
    can = report.capabilities
    return {
        "catalog": properties.name,
        "uri": properties.shown_uri,
        "warehouse": settings.catalog.warehouse,
        "inbox": settings.inbox,
        "ok": not report.failed,
        "checks": [
            {"check": one.name, "ok": one.error is None, "error": one.error}
            for one in report.checks
        ],
        "capabilities": None
        if can is None
        else {name.replace("_", "-"): value for name, value in asdict(can).items()},
        "unread-properties": unread_properties(settings),
    }


def unread_properties(settings: Settings) -> list[str]:
    """Return the names of properties that PyIceberg's configuration has, and Frazil does not
    read."""
    from committer.catalog.property_names import is_known

    return sorted(name for name in settings.catalog.properties if not is_known(name))


def _tables(can: CatalogCapabilities) -> str:
    if can.transaction_tables_max is None:
        return _yes(can.has_transactions)
    return f"up to {can.transaction_tables_max}"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _most(value: int | None) -> str:
    return "any number" if value is None else f"at most {value}"
