"""The name and the properties of a catalog, by the names that PyIceberg and Iceberg Java use.

A value only: settings, the command and the Spark side make it, and `committer.backends` opens what
it names. Each value is a text, as in every other Iceberg client.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from urllib.parse import urlsplit

from committer.errors import SettingsError
from committer.url_text import without_secrets


class CatalogKind(StrEnum):
    """The kinds of catalog that there is an adapter for; the values are PyIceberg's `type`."""

    SQL = "sql"
    DYNAMODB = "dynamodb"
    HADOOP = "hadoop"
    GLUE = "glue"
    REST = "rest"
    HIVE = "hive"
    S3_TABLES = "s3tables"


# Java's names of some of them.
_OTHER_NAMES = {"jdbc": CatalogKind.SQL}
# The kinds that only an address says the place of, and its forms.
_URIS = {
    CatalogKind.SQL: "`sqlite:////PATH/catalog.db` or `postgresql://USER@HOST/DATABASE`",
    CatalogKind.REST: "`https://HOST/PATH`",
    CatalogKind.HIVE: "`thrift://HOST:PORT`",
}
_SCHEMES = {
    "dynamodb": CatalogKind.DYNAMODB,
    "http": CatalogKind.REST,
    "https": CatalogKind.REST,
    "jdbc": CatalogKind.SQL,
    "mariadb": CatalogKind.SQL,
    "thrift": CatalogKind.HIVE,
    "mysql": CatalogKind.SQL,
    "postgresql": CatalogKind.SQL,
    "sqlite": CatalogKind.SQL,
}


@dataclass(frozen=True, slots=True)
class CatalogProperties:
    """One catalog as it is configured. `values` may hold secrets; an empty one counts as absent."""

    name: str
    values: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return f"catalog `{self.name}` ({self.shown_place})"

    def __hash__(self) -> int:
        return hash((self.name, frozenset(self.values.items())))

    @property
    def uri(self) -> str:
        return self.get("uri")

    @property
    def shown_uri(self) -> str:
        """The URI without its secrets; empty where there is none."""
        return without_secrets(self.uri) if self.uri else ""

    @property
    def shown_place(self) -> str:
        """The URI without its secrets; the type where the catalog has none."""
        return self.shown_uri or self.get("type")

    @property
    def warehouse(self) -> str:
        """The location below which new tables are created, without a slash at its end."""
        return self.get("warehouse").rstrip("/")

    @property
    def place(self) -> str:
        """The location below which new tables are created; empty where the catalog alone knows."""
        return "" if self.has_own_places and "://" not in self.warehouse else self.warehouse

    @property
    def has_own_places(self) -> bool:
        """Whether the catalog itself knows where tables go: `warehouse` is a name to it, or none is
        needed.
        """
        return self._is_one_of(CatalogKind.REST, CatalogKind.S3_TABLES)

    @property
    def is_rest(self) -> bool:
        """Whether it is served by Iceberg's REST protocol; False for a kind without an adapter."""
        return self._is_one_of(CatalogKind.REST)

    def _is_one_of(self, *kinds: CatalogKind) -> bool:
        try:
            return self.kind in kinds
        except SettingsError:
            return False

    @property
    def kind(self) -> CatalogKind:
        """The kind that `type` names, else the one that the scheme of `uri` implies.

        Errors: `SettingsError` for a `type` or a scheme that no adapter serves.
        """
        named = self.get("type").lower()
        if named:
            return _kind_named(named)
        scheme = urlsplit(self.uri).scheme.partition("+")[0].lower()
        kind = _SCHEMES.get(scheme)
        if kind is None:
            raise SettingsError(
                f"`uri` {without_secrets(self.uri) or 'is empty'}: no catalog has the scheme"
                f" `{scheme}`; expected one of {_listed(_SCHEMES)}, or set `type`"
            )
        return kind

    @property
    def address(self) -> str:
        """The property that says where this catalog is, for an error to name."""
        try:
            kind = self.kind
        except SettingsError:
            return "type" if self.get("type") else "uri"
        if kind in (CatalogKind.HADOOP, CatalogKind.S3_TABLES):
            return "warehouse"
        return "uri" if self.uri or kind in _URIS else "type"

    def check_uri(self) -> None:
        """Refuse a catalog whose kind needs an address, and that has none.

        Errors: `SettingsError`.
        """
        if not self.uri and (example := _URIS.get(self.kind)):
            raise SettingsError(f"`uri` is empty: expected {example}")

    def get(self, *names: str) -> str:
        """Return the value of the first of these names that has one; empty where none has."""
        return next((value for name in names if (value := self.values.get(name, ""))), "")

    def flag(self, name: str) -> bool:
        """Return whether a property is `true`; absent counts as false."""
        return self.get(name).lower() == "true"

    def with_folder(self, warehouse: str) -> CatalogProperties:
        """Return the same catalog in this folder if it is a folder, and none is named."""
        if self.warehouse or not self._is_one_of(CatalogKind.HADOOP):
            return self
        return replace(self, values={**self.values, "warehouse": warehouse})

    def with_uri(self, uri: str) -> CatalogProperties:
        """Return the same catalog at another place."""
        return replace(self, values={**self.values, "uri": uri})

    def below(self, prefix: str) -> dict[str, str]:
        """Return the properties whose name begins with the prefix, by the rest of their name."""
        return {
            name.removeprefix(prefix): value
            for name, value in self.values.items()
            if name.startswith(prefix) and value
        }


def _kind_named(text: str) -> CatalogKind:
    if text in _OTHER_NAMES:
        return _OTHER_NAMES[text]
    try:
        return CatalogKind(text)
    except ValueError:
        raise SettingsError(
            f"`type` {text}: there is no adapter for such a catalog; expected one of"
            f" {_listed((*CatalogKind, *_OTHER_NAMES))}"
        ) from None


def _listed(names: Mapping[str, object] | tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))
