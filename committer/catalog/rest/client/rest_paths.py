"""The paths of namespaces and tables below `/v1`, a table's name in a body, and which endpoints a
server offers. Pure.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import quote

from committer.request.table_identifier import TableIdentifier

Namespace = tuple[str, ...]

# Between the levels of a namespace, as it stands in a URL: what the protocol began with.
UNIT_SEPARATOR = "%1F"
_NAMESPACE = "/v1/{prefix}/namespaces/{namespace}"
_TABLE = f"{_NAMESPACE}/tables/{{table}}"
TRANSACTIONS = "POST /v1/{prefix}/transactions/commit"
# Source: the REST catalog's OpenAPI description, `CatalogConfig`.
DEFAULT_ENDPOINTS = frozenset(
    {
        "GET /v1/{prefix}/namespaces",
        "POST /v1/{prefix}/namespaces",
        f"GET {_NAMESPACE}",
        f"DELETE {_NAMESPACE}",
        f"POST {_NAMESPACE}/properties",
        f"GET {_NAMESPACE}/tables",
        f"POST {_NAMESPACE}/tables",
        f"GET {_TABLE}",
        f"POST {_TABLE}",
        f"DELETE {_TABLE}",
        f"POST {_NAMESPACE}/register",
        f"POST {_TABLE}/metrics",
        "POST /v1/{prefix}/tables/rename",
        TRANSACTIONS,
    }
)
REGISTER = f"POST {_NAMESPACE}/register"
RENAME = "POST /v1/{prefix}/tables/rename"
UNREGISTER = f"POST {_TABLE}/unregister"
CREDENTIALS = f"GET {_TABLE}/credentials"


@dataclass(frozen=True, slots=True)
class Paths:
    """Builds paths as one server wants them. `separator`: as it stands in a URL, so encoded."""

    prefix: str = ""
    separator: str = UNIT_SEPARATOR
    endpoints: Collection[str] = DEFAULT_ENDPOINTS

    def offers(self, endpoint: str) -> bool:
        """Return whether the server has said that it offers the endpoint."""
        return endpoint in self.endpoints

    def below_prefix(self, rest: str) -> str:
        # A prefix may have several parts: what it quotes stays quoted.
        parts = ("v1", *(quote(part, safe="%") for part in self.prefix.split("/") if part), rest)
        return "/".join(parts)

    def levels(self, namespace: Namespace) -> str:
        """Return a namespace for a path or a query: each level quoted, then joined."""
        return self.separator.join(quote(level, safe="") for level in namespace)

    def namespaces(self) -> str:
        return self.below_prefix("namespaces")

    def namespace(self, namespace: Namespace) -> str:
        return f"{self.namespaces()}/{self.levels(namespace)}"

    def tables(self, namespace: Namespace) -> str:
        return f"{self.namespace(namespace)}/tables"

    def table(self, identifier: TableIdentifier) -> str:
        return f"{self.tables(identifier.namespace)}/{quote(identifier.name, safe='')}"

    def register(self, namespace: Namespace) -> str:
        return f"{self.namespace(namespace)}/register"

    def transactions(self) -> str:
        return self.below_prefix("transactions/commit")

    def rename(self) -> str:
        return self.below_prefix("tables/rename")


def identifier_json(identifier: TableIdentifier) -> dict[str, object]:
    """Return a table's name as it stands in the body of a request."""
    return {"namespace": list(identifier.namespace), "name": identifier.name}


def is_addressable(identifier: TableIdentifier) -> bool:
    """Return whether a path can name the table: servers resolve `..`, and drop empty parts."""
    names = (*identifier.namespace, identifier.name)
    return bool(identifier.namespace) and all(name not in ("", ".", "..") for name in names)
