"""The catalogs that a table was in before: requests that name one of them are still for this table.

`frazil table migrate` writes the property. A request names its catalog, so that one which was put
into the inbox of another is found out; the table's uuid says which table it is for.
"""

from __future__ import annotations

from collections.abc import Mapping

import orjson

FORMER_CATALOGS_PROPERTY = "frazil.former-catalogs"
"""A JSON list of catalog names."""


def parse_former_catalogs(properties: Mapping[str, str]) -> frozenset[str]:
    """Return the names; none where the property is missing or was damaged."""
    try:
        names = orjson.loads(properties.get(FORMER_CATALOGS_PROPERTY, "[]"))
    except orjson.JSONDecodeError:
        return frozenset()
    if not isinstance(names, list):
        return frozenset()
    return frozenset(name for name in names if isinstance(name, str))


def with_former_catalog(properties: Mapping[str, str], name: str) -> str | None:
    """Return the property's next value; None where it names the catalog already."""
    names = parse_former_catalogs(properties)
    return None if name in names else orjson.dumps(sorted({*names, name})).decode()
