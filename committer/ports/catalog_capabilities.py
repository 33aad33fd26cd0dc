"""The capabilities of a catalog. The service asks these fields, never the kind of catalog."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Condition = Literal["pointer", "requirements"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogCapabilities:
    """The abilities of a catalog. An adapter states them; `Catalog.probe` proves the condition."""

    kind: str
    """The catalog's kind in reports and errors: `DynamoDB`, `REST`."""
    metadata_writer: Literal["committer", "catalog"] = "committer"
    """`committer`: `Swap.metadata` is written to `Swap.metadata_location` before the swap, and the
    committer deletes old metadata files. `catalog`: the catalog writes and deletes metadata files
    and chooses their locations: the committer writes none before a swap, and deletes none."""
    condition: Condition = "pointer"
    """`pointer`: a swap fails if anything at all has changed since its base. `requirements`: it
    fails only if one of `Swap.requirements` does not hold, so each change of a table property that
    must not be lost has to move a branch that the requirements name. Such a catalog applies
    `Swap.updates` to whatever is current."""
    has_several_snapshots: bool = True
    """Whether one swap can add several snapshots."""
    has_transactions: bool = False
    """Whether the back end is known to apply swaps of several tables together or not at all. No
    probe can show it: a server that applies them one by one behaves alike until it fails."""
    transaction_tables_max: int | None = None
    """The number of tables that one such group may have; None: any number."""
    has_atomic_rename: bool = True
    """Whether a rename is one step. Where it is not, `Catalog.rename_table` refuses."""
    drops_pointer_only: bool = True
    """Whether a table can be dropped while its files stay. Where a table is its folder it cannot,
    and `Catalog.drop_table` refuses."""
    registers_tables: bool = True
    """Whether a metadata file that is there can become a table. Where it cannot,
    `Catalog.register_table` refuses."""
    chooses_locations: bool = False
    """Whether the catalog decides where each table is. `Catalog.create_table` then replaces the
    location of the metadata that it is given, and the table has to be loaded to know it."""
    maintains_tables: bool = False
    """Whether the service behind the catalog expires snapshots and deletes files. The committer's
    upkeep then does neither, and merges manifests only; a search for orphan files is refused."""
    has_namespace_properties: bool = True
    """Whether namespaces keep properties. Where they do not, setting one is `UnsupportedError`."""
    namespace_levels_max: int | None = None
    """The number of levels that a namespace may have; None: any number."""
    property_key_chars_max: int | None = None
    """The length that the name of a table property may have; None: any length."""
