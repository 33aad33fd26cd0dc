"""Every setting of the service, with its unit and default. Read once at start-up.

Sources, strongest first: arguments, environment (`FRAZIL_…`, groups joined by `__`; with `_FILE`
behind the name, the value is in the file that it names), the TOML file named by `FRAZIL_CONFIG`
(default `<home>/frazil.toml`), defaults. With no configuration at all the service runs on one
machine below `~/.frazil`.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)
from pydantic_settings import SettingsError as UnreadableSourceError

from committer.aws.access import ENDPOINT, AddressingStyle
from committer.errors import SettingsError
from committer.settings import default_places
from committer.settings.config_files import expanded, read_settings_file
from committer.settings.secret_files import read_secret_files
from committer.settings.setting_names import refuse_unknown_variables, setting_text

# `s3a:` and `s3n:` are other names of `s3:`; `file:/x`, `file:///x` and `/x` are one path.
_SPELLINGS = re.compile(r"(s3[an]?)://|file:(?://(?=/))?", re.IGNORECASE)


class _Group(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class CatalogSettings(_Group):
    """The catalog that holds the table pointers."""

    name: Annotated[str, Field(min_length=1, max_length=255)] = "frazil"
    """The catalog's name: part of the key in a SQL catalog, and checked in every request."""
    uri: str = ""
    """SQLAlchemy URL of a SQL catalog, or `dynamodb://<table>` (`dynamodb://` alone: the table
    `iceberg`). Default: `sqlite:///<home>/catalog.db`."""
    warehouse: str = ""
    """Location below which new tables are created: `file://…` or `s3://<bucket>/…`. Default:
    `file://<home>/warehouse`."""


class QueueSettings(_Group):
    """The queue of doorbells. Losing it costs latency only."""

    url: str = "private"
    """`redis://…`, `rediss://…`, `unix://…`; `private`: a server below `<home>` that `serve`
    starts;
    `none`: work from the inbox alone."""
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
    """Pause between commits so that another engine can commit, on tables where one did in the last
    ten minutes: more than twice what its commit takes. 0: no pause. The table property
    `frazil.commit.yield-to-others-ms` overrides it, and then the pauses are always made."""
    yield_to_others_period_ms: Annotated[int, Field(ge=1_000, le=3_600_000)] = 30_000
    """Another engine that waits for such a pause gets a whole one within this time."""
    batch_files_max: Annotated[int, Field(ge=1)] = 100_000
    """A batch ends with the request that reaches this number of files."""
    batch_bytes_max: Annotated[int, Field(ge=1)] = 64 * 1024 * 1024
    """A batch ends with the request that reaches this number of request bytes."""
    batch_requests_max: Annotated[int, Field(ge=1)] = 10_000
    """A batch ends at this number of requests."""


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


class SecuritySettings(_Group):
    """Signatures of requests, and the keys that may publish."""

    keys: str = ""
    """Location of the file of signing keys, `/…`, `file://…` or `s3://…`; read again every 10 s.
    Empty: signatures are not verified."""
    require_signature: bool = False
    """Quarantine requests that are not signed, for all tables; the table property
    `frazil.require-signature = true` does it for one."""


class AwsSettings(_Group):
    """Overrides of the usual AWS settings for S3 and DynamoDB. Credentials come from the usual
    places only: role, profile, environment."""

    region: str = ""
    """Default: `AWS_REGION`, or the profile's."""
    profile: str = ""
    """A profile of `~/.aws/config`. Default: `AWS_PROFILE`."""
    s3_endpoint_url: Annotated[str, Field(pattern=ENDPOINT)] = ""
    """For a server that is not AWS: `http://host:port`. Default: `AWS_ENDPOINT_URL_S3`, else
    AWS."""
    dynamodb_endpoint_url: Annotated[str, Field(pattern=ENDPOINT)] = ""
    """As above, for DynamoDB. Default: `AWS_ENDPOINT_URL_DYNAMODB`, else AWS."""
    s3_addressing_style: AddressingStyle = "auto"
    """The place of a bucket's name in a request: in the `path` (most servers that are not AWS),
    in the host name (`virtual`)."""


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
    aws: AwsSettings = AwsSettings()

    @model_validator(mode="after")
    def _fill_in(self) -> Self:
        home = expanded(self.home).absolute()
        filled = {
            "home": home,
            "inbox": self.inbox or default_places.inbox(home),
            "catalog": self.catalog.model_copy(
                update={
                    "uri": self.catalog.uri or default_places.catalog_uri(home),
                    "warehouse": (self.catalog.warehouse or f"file://{home}/warehouse").rstrip("/"),
                }
            ),
        }
        for name, value in filled.items():
            object.__setattr__(self, name, value)
        return self

    @model_validator(mode="after")
    def _inbox_outside_the_warehouse(self) -> Self:
        if is_inside(self.inbox, self.catalog.warehouse):
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
        if isinstance(env_settings, EnvSettingsSource):
            env_settings.env_vars = read_secret_files(env_settings.env_vars)
        file = InitSettingsSource(settings_cls, read_settings_file(*_config_place()))
        return init_settings, env_settings, file


def is_inside(location: str, folder: str) -> bool:
    """Return whether a location is the folder, or below it, however both are spelled."""
    return _as_folder(location).startswith(_as_folder(folder))


def _as_folder(location: str) -> str:
    """Return one spelling of the places that have several."""
    match = _SPELLINGS.match(location)
    plain = location[match.end() :] if match else location
    scheme = "s3://" if match and match[1] else ""
    return f"{scheme}{plain}".rstrip("/") + "/"


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


_SAID = {
    "extra_forbidden": "there is no such setting",
    "string_pattern_mismatch": "expected http://HOST:PORT or https://HOST:PORT",
}


def _explain(error: ValidationError) -> str:
    lines = []
    for problem in error.errors(include_url=False, include_context=False, include_input=False):
        parts = [str(part) for part in problem["loc"]]
        setting = ".".join(parts)
        where = f"{setting_text(setting)}: " if parts else ""
        said = _SAID.get(problem["type"]) or problem["msg"].removeprefix("Value error, ")
        lines.append(where + said)
    return "; ".join(lines)
