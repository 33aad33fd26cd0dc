"""Every setting of the service, with its unit and default. Read once at start-up.

Sources, strongest first: arguments, environment (`FRAZIL_…`, groups joined by `__`; with `_FILE`
behind the name, the value is in the file that it names), the TOML file named by `FRAZIL_CONFIG`
(default `<home>/frazil.toml`), defaults. With no configuration at all the service runs on one
machine below `~/.frazil`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)
from pydantic_settings import SettingsError as UnreadableSourceError

from committer.catalog.catalog_properties import CatalogProperties
from committer.errors import SettingsError
from committer.iceberg.metadata.location_properties import AllowedLocations, parse_folders
from committer.iceberg.values.locations import comparable_location
from committer.request.unsigned_operations import parse_operations
from committer.settings import default_places
from committer.settings.catalog_sources import DEFAULT_NAME, CatalogSources, resolve_catalog
from committer.settings.config_files import expanded, read_settings_file
from committer.settings.pyiceberg_config import is_pyicebergs
from committer.settings.secret_files import read_secret_files
from committer.settings.setting_names import refuse_unknown_variables, setting_text


class _Group(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class CatalogSettings(_Group):
    """The catalog that holds the table pointers, by the property names of PyIceberg and Java. In
    the TOML file a property is a key of the table `[catalog]`: `"s3.endpoint" = "http://…"`.
    """

    name: Annotated[str, Field(min_length=1, max_length=255)] = DEFAULT_NAME
    """The catalog's name: part of the key in a SQL catalog, checked in every request, and the name
    by which PyIceberg's configuration is searched."""
    type: str = ""
    uri: Annotated[str, Field(repr=False)] = ""
    warehouse: str = ""
    properties: Annotated[dict[str, str], Field(repr=False)] = {}  # pydantic copies

    @property
    def all_properties(self) -> CatalogProperties:
        """The catalog's address as adapters and readers take it."""
        named = {"type": self.type, "uri": self.uri, "warehouse": self.warehouse}
        return CatalogProperties(self.name, {**self.properties, **named})


class QueueSettings(_Group):
    """The queue of doorbells. Losing it costs latency only."""

    url: str = "private"
    """`redis://…`, `rediss://…` (TLS; a private CA: `rediss://…?ssl_ca_certs=/…/ca.pem`),
    `unix://…`; `private`: a server below `<home>` that `serve` starts; `none`: work from the inbox
    alone."""
    consumer: str = ""
    """This committer's name among those that share the queue. Default: the host name. It must be
    unique: a committer that starts replaces an earlier process of its name. Keep it stable over
    restarts.
    """
    reclaim_idle_s: Annotated[float, Field(ge=1)] = 300.0
    """Entries held by another consumer for longer than this are taken over."""


class CommitSettings(_Group):
    """Decides when a batch is committed, and how large it is."""

    min_interval_ms: Annotated[int, Field(ge=0, le=3_600_000)] = 1_000
    """Least time between the starts of two commits of one table; the table property
    `frazil.commit.min-interval-ms` overrides it."""
    yield_to_others_ms: Annotated[int, Field(ge=0, le=60_000)] = 5_000
    """Pause between commits so that another engine can commit, where one did in the last ten
    minutes: more than twice what its commit takes. 0: none. The table property
    `frazil.commit.yield-to-others-ms` overrides it; then it pauses always."""
    yield_to_others_period_ms: Annotated[int, Field(ge=1_000, le=3_600_000)] = 30_000
    """Another engine that waits for such a pause gets a whole one within this time."""
    batch_files_max: Annotated[int, Field(ge=1)] = 100_000
    """A batch ends with the request that reaches this number of files."""
    batch_bytes_max: Annotated[int, Field(ge=1)] = 64 * 1024 * 1024
    """A batch ends with the request that reaches this number of request bytes."""
    batch_requests_max: Annotated[int, Field(ge=1)] = 10_000
    """A batch ends at this number of requests."""
    transaction_wait_s: Annotated[float, Field(ge=1, le=86_400)] = 600.0
    """How long a request of a transaction waits in the inbox for those of its other tables, before
    it is quarantined."""


class UpkeepSettings(_Group):
    """Background maintenance of tables."""

    expire_snapshots: bool = False
    """Expire snapshots of tables without the property `frazil.expire.enabled`; with Iceberg's
    `history.expire.*` properties and their defaults.
    """


class ServiceSettings(_Group):
    """The process."""

    drain_timeout_s: Annotated[float, Field(ge=0)] = 20.0
    """After SIGTERM: time to finish the commits in flight. Other requests stay un-acknowledged."""
    lease_s: Annotated[float, Field(ge=1, le=3_600)] = 30.0
    """Several committers on one queue share the tables: after at most this time the others take
    over the tables of one that dies. A lease is renewed three times within it.
    """
    http_host: str = "127.0.0.1"
    """Address of the health endpoints; `0.0.0.0` in a container."""
    http_port: Annotated[int, Field(ge=0, le=65535)] = 8181
    """Port of the health endpoints; 0 switches them off."""
    http_names: str = ""
    """Names, separated by commas, by which the endpoints answer, and always by `localhost` and IP
    addresses. Empty: on a loopback address by no other name, against DNS rebinding; on another
    address by any."""
    status_url: str = ""
    """Where the other committers' `/status`, and `frazil status`, name the health endpoints of this
    one: `http://10.0.0.7:8181`. Default: `http_host` and `http_port`, with the machine's name in
    place of `0.0.0.0`."""
    reconcile_interval_s: Annotated[float, Field(gt=0)] = 30.0
    """How often the inbox is listed for requests that were never announced."""
    reconcile_age_s: Annotated[float, Field(ge=0)] = 30.0
    """How old such a request must be before it is announced again."""
    breaker_threshold: Annotated[int, Field(ge=0)] = 20
    """Consecutive quarantined requests of a producer that open its circuit breaker: its next
    requests wait in the inbox. 0: never."""
    breaker_pause_s: Annotated[float, Field(gt=0)] = 60.0
    """How long a breaker stays open before one of the waiting requests is tried; twice as long each
    time that one fails, up to ten times this."""
    log_format: Literal["console", "json"] = "console"
    """`json` for machines."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The lowest level that is logged."""


class LimitSettings(_Group):
    """How much of one table is read into memory. A table with a file beyond a limit stops, with a
    condition that names the file; the other tables go on. Sizes are those without compression; in
    memory a file takes five to ten times as much.
    """

    metadata_bytes_max: Annotated[int, Field(ge=8 * 1024 * 1024)] = 64 * 1024 * 1024
    """A metadata file, or a REST catalog's answer with a table: about 100,000 snapshots."""
    manifest_list_bytes_max: Annotated[int, Field(ge=1024 * 1024)] = 64 * 1024 * 1024
    """A manifest list: 200,000 to 500,000 manifests, which take seconds to decode."""
    manifest_bytes_max: Annotated[int, Field(ge=1024 * 1024)] = 256 * 1024 * 1024
    """A manifest. The default `commit.manifest.target-size-bytes`, 8 MB, makes some 30 MB."""


class SecuritySettings(_Group):
    """Which requests may change which tables, and where tables may be: see `SECURITY.md`."""

    keys: str = ""
    """Location of the file of signing keys, `/…`, `file://…` or `s3://…`; read again every 10 s.
    Empty: signatures are not verified."""
    require_signature: bool = False
    """Quarantine requests that are not signed, for all tables; the table property
    `frazil.require-signature = true` does it for one."""
    unsigned_operations: str = ""
    """Operations that need no verified signature, with commas between them, or `all`, or `none`.
    Default: `all` if inbox and queue are in a private `<home>`, else `append`; the table property
    `frazil.unsigned-operations` goes before it."""
    check_unsigned_files: bool = False
    """Quarantine a request without a verified signature if a file that it adds does not exist: a
    call for each file, with the right to read it. The table property
    `frazil.check-unsigned-files` goes before it."""
    locations: str = ""
    """Folders, with commas between them, in which tables may be, and what their location properties
    name (`write.data.path`, …). Default: `catalog.warehouse`, if it is a location; for properties
    also the table's own location."""

    @field_validator("unsigned_operations")
    @classmethod
    def _readable_operations(cls, text: str) -> str:
        if text.strip():
            parse_operations(text)
        return text.strip()

    @field_validator("locations")
    @classmethod
    def _readable_folders(cls, text: str) -> str:
        parse_folders(text)
        return text


class Settings(BaseSettings):
    """All groups."""

    model_config = SettingsConfigDict(
        env_prefix="FRAZIL_", env_nested_delimiter="__", frozen=True, extra="forbid"
    )

    home: Path = Path(default_places.HOME)
    """Folder of everything that has no location of its own."""
    inbox: str = ""
    """Location of the inbox and the quarantine, outside every table: `file://…` or
    `s3://<bucket>/…`. Default: `file://<home>/requests`.
    """
    catalog: CatalogSettings = CatalogSettings()
    queue: QueueSettings = QueueSettings()
    commit: CommitSettings = CommitSettings()
    upkeep: UpkeepSettings = UpkeepSettings()
    service: ServiceSettings = ServiceSettings()
    security: SecuritySettings = SecuritySettings()
    limits: LimitSettings = LimitSettings()

    @property
    def allowed_locations(self) -> AllowedLocations:
        """Where tables may be: in the folders that the settings name, else in the warehouse."""
        place = self.catalog.all_properties.place
        return AllowedLocations.of(self.security.locations, place=place, inbox=self.inbox)

    @model_validator(mode="after")
    def _fill_in(self) -> Self:
        home = expanded(self.home).absolute()
        filled = {
            "home": home,
            "inbox": self.inbox or default_places.inbox(home),
            "catalog": self.catalog.model_copy(
                update={
                    "uri": self.catalog.uri or self._default_uri(home),
                    "warehouse": self.catalog.warehouse.rstrip("/") or self._default_place(home),
                }
            ),
        }
        for name, value in filled.items():
            object.__setattr__(self, name, value)
        return self

    def _default_place(self, home: Path) -> str:
        """Return where new tables go; empty where the catalog knows."""
        has_own = self.catalog.all_properties.has_own_places
        return "" if has_own else default_places.warehouse(home)

    def _default_uri(self, home: Path) -> str:
        return "" if self.catalog.type else default_places.catalog_uri(home)

    @model_validator(mode="after")
    def _inbox_outside_the_warehouse(self) -> Self:
        place = self.catalog.warehouse
        if place and is_inside(self.inbox, place):
            raise ValueError(
                f"inbox `{self.inbox}` lies inside the warehouse `{self.catalog.warehouse}`: an"
                " engine's orphan clean-up could remove requests; put it outside"
            )
        return self

    @model_validator(mode="after")
    def _known_queue(self) -> Self:
        url = self.queue.url
        if url not in ("private", "none") and urlsplit(url).scheme not in (
            "redis",
            "rediss",
            "unix",
        ):
            raise ValueError(
                "queue.url: expected `private`, `none`, redis://…, rediss://… or unix://…"
            )
        return self

    @model_validator(mode="after")
    def _keys_to_verify_with(self) -> Self:
        if self.security.require_signature and not self.security.keys:
            raise ValueError(
                "security.require_signature: also set security.keys, the file of the keys that"
                " signatures are verified with"
            )
        if self.security.unsigned_operations.lower() == "none" and not self.security.keys:
            raise ValueError(
                "security.unsigned_operations: with `none`, also set security.keys, the file of the"
                " keys that signatures are verified with, or no request lands"
            )
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003  # the base class names it
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003  # the base class names it
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        variables: dict[str, str | None] = {}
        if isinstance(env_settings, EnvSettingsSource):
            variables = read_secret_files(env_settings.env_vars)
            env_settings.env_vars = _without_catalog(variables)
        document = read_settings_file(*_config_place())
        given = dict(init_settings())
        theirs = {name: text for name, text in os.environ.items() if is_pyicebergs(name)}
        catalog = _catalog_group(given.pop("catalog", {}), variables | theirs, document)
        rest = {name: value for name, value in document.items() if name != "catalog"}
        file = InitSettingsSource(settings_cls, rest)
        return InitSettingsSource(settings_cls, given | catalog), env_settings, file


def _without_catalog(variables: Mapping[str, str | None]) -> dict[str, str | None]:
    return {
        name: value
        for name, value in variables.items()
        if not name.upper().startswith("FRAZIL_CATALOG__")
    }


def _catalog_group(
    given: object, variables: Mapping[str, str | None], document: Mapping[str, object]
) -> dict[str, object]:
    """Resolve the group `catalog` of all sources. `given`: by the call, whole or as properties."""
    if not isinstance(given, Mapping):
        return {"catalog": given}
    named = {name: str(value) for name, value in given.items() if name != "asked_for"}
    found = resolve_catalog(
        CatalogSources(
            named=named,
            environment=variables,
            document=document,
            asked_for=given.get("asked_for") or None,
        )
    )
    values = dict(found.values)
    fields = {name: values.pop(name, "") for name in ("type", "uri", "warehouse")}
    return {"catalog": {"name": found.name, **fields, "properties": values}}


def is_inside(location: str, folder: str) -> bool:
    """Return whether a location is the folder, or below it, however both are spelled."""
    return comparable_location(location).is_within(comparable_location(folder))


def _config_place() -> tuple[str | None, Path]:
    """Return the file that is named, and the folder of the one that is read if none is."""
    home = expanded(os.environ.get("FRAZIL_HOME") or default_places.HOME)
    return os.environ.get("FRAZIL_CONFIG") or None, home


def load_settings(**overrides: object) -> Settings:
    """Read all sources. Errors: `SettingsError` naming each wrong setting."""
    refuse_unknown_variables(os.environ)
    try:
        return Settings(**overrides)  # type: ignore[arg-type]  # validated by pydantic
    except ValidationError as error:
        raise SettingsError(_explain(error)) from None
    except UnreadableSourceError as error:
        raise SettingsError(f"environment (FRAZIL_…): {error}") from None


def _explain(error: ValidationError) -> str:
    lines = []
    for problem in error.errors(include_url=False, include_context=False, include_input=False):
        parts = [str(part) for part in problem["loc"]]
        setting = ".".join(parts)
        where = f"{setting_text(setting)}: " if parts else ""
        said = problem["msg"].removeprefix("Value error, ")
        if problem["type"] == "extra_forbidden":
            said = "there is no such setting"
        lines.append(where + said)
    return "; ".join(lines)
