"""Refuses what a catalog cannot do before anything is asked of it, in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from committer.errors import UnsupportedError

if TYPE_CHECKING:
    from committer.ports.catalog_capabilities import CatalogCapabilities


def check_namespace(
    can: CatalogCapabilities, namespace: tuple[str, ...], *, has_properties: bool = False
) -> None:
    """Refuse a namespace that is too deep, or properties where there are none.

    Errors: `UnsupportedError`.
    """
    most = can.namespace_levels_max
    if most is not None and len(namespace) > most:
        levels = "one level" if most == 1 else f"{most} levels"
        raise UnsupportedError(
            f"namespace {'.'.join(namespace)} has {len(namespace)} levels, and a catalog of the"
            f" kind {can.kind} takes {levels}: choose a shorter name, such as"
            f" `{'_'.join(namespace)}`"
        )
    if has_properties and not can.has_namespace_properties:
        raise UnsupportedError(
            f"namespace {'.'.join(namespace)}: a catalog of the kind {can.kind} keeps no properties"
            " of namespaces; set them on the tables"
        )


def check_rename(can: CatalogCapabilities) -> None:
    """Refuse a rename that would take several steps. Errors: `UnsupportedError`.

    A catalog whose tables are folders refuses it itself: registering and dropping is no way there.
    """
    if not can.has_atomic_rename and can.drops_pointer_only:
        raise UnsupportedError(
            f"a catalog of the kind {can.kind} cannot rename a table in one step, so a commit that"
            " comes between would be lost: stop all writers, then `frazil table register` it under"
            " the new name and `frazil table drop` the old one"
        )


def check_location(can: CatalogCapabilities, location: str) -> None:
    """Refuse a location for a new table where the catalog decides. Errors: `UnsupportedError`."""
    if location and can.chooses_locations:
        raise UnsupportedError(
            f"a catalog of the kind {can.kind} decides where a table is: leave the location out"
        )


def check_register(can: CatalogCapabilities, metadata_location: str) -> None:
    """Refuse a metadata file that cannot become a table. Errors: `UnsupportedError`."""
    if not can.registers_tables:
        raise UnsupportedError(
            f"a catalog of the kind {can.kind} takes no metadata file from elsewhere, such as"
            f" {metadata_location}: create the table there, and write its rows again"
        )
