"""The checks of a group of swaps that every catalog makes before it sends anything. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from committer.errors import InvariantError, UnsupportedError
from committer.ports.catalog_capabilities import CatalogCapabilities
from committer.ports.pointer_swap import Swap

_ABLE = (
    "a SQL database, DynamoDB and a REST catalog with `rest.atomic-transactions` can change several"
    " tables in one atomic commit"
)


def require_group(swaps: Sequence[Swap], capabilities: CatalogCapabilities) -> None:
    """Refuse a group that this catalog cannot apply.

    Errors: `UnsupportedError`; `InvariantError` for a table named twice.
    """
    tables = [swap.base.identifier for swap in swaps]
    if not capabilities.has_transactions:
        raise no_groups(capabilities, swaps)
    if len(set(tables)) < len(tables):
        raise InvariantError(f"a group of swaps names a table twice: {_names(swaps)}")
    limit = capabilities.transaction_tables_max
    if limit is not None and len(tables) > limit:
        raise UnsupportedError(
            f"{len(tables)} tables in one atomic commit: a catalog of the kind {capabilities.kind}"
            f" takes at most {limit}"
        )


def no_groups(capabilities: CatalogCapabilities, swaps: Sequence[Swap]) -> UnsupportedError:
    """Return the error of a catalog that has no transaction over several tables."""
    return UnsupportedError(
        f"a catalog of the kind {capabilities.kind} cannot change several tables in one atomic"
        f" commit ({_names(swaps)}): {_ABLE}"
    )


def _names(swaps: Sequence[Swap]) -> str:
    return ", ".join(str(swap.base.identifier) for swap in swaps)
