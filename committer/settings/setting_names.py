"""The names of all settings and `FRAZIL_…` variables: no value, no default.

One environment and one file serve the committer and Spark drivers, so both know all names. A name
that neither knows is refused: it would be ignored, and a default take its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from committer.catalog.property_names import CATALOG_PROPERTIES
from committer.errors import (
    AccessError,
    CatalogUnavailableError,
    FrazilError,
    SettingsError,
    StorageUnavailableError,
)
from committer.iceberg.values.near_names import did_you_mean

SETTINGS = frozenset(
    {
        *("home", "inbox"),
        "catalog.name",
        *(f"catalog.{name}" for name in CATALOG_PROPERTIES),
        *("queue.url", "queue.consumer", "queue.reclaim_idle_s"),
        "commit.min_interval_ms",
        *("commit.yield_to_others_ms", "commit.yield_to_others_period_ms"),
        *("commit.batch_files_max", "commit.batch_bytes_max", "commit.batch_requests_max"),
        "commit.transaction_wait_s",
        "upkeep.expire_snapshots",
        *("service.drain_timeout_s", "service.lease_s"),
        *("service.http_host", "service.http_port", "service.http_names"),
        "service.status_url",
        *("service.reconcile_interval_s", "service.reconcile_age_s"),
        *("service.breaker_threshold", "service.breaker_pause_s"),
        *("service.log_format", "service.log_level"),
        *("security.keys", "security.require_signature", "security.locations"),
        *("security.unsigned_operations", "security.check_unsigned_files"),
        *("limits.metadata_bytes_max", "limits.manifest_list_bytes_max"),
        "limits.manifest_bytes_max",
    }
)
_PREFIX = "FRAZIL_"
# Read beside the settings: by `service_settings.py`, by the command, and by the tests.
_OTHERS = frozenset({"FRAZIL_CONFIG", "FRAZIL_DEBUG"})
_TESTS = "FRAZIL_TEST_"


def variable_of(setting: str) -> str:
    """Return the environment variable of a setting."""
    return _PREFIX + setting.replace(".", "__").replace("-", "_").upper()


def setting_text(setting: str, *, is_option: bool = False) -> str:
    """Return a setting as an error names it; `is_option`: also as an option of a Spark write."""
    way = f'option("{setting}", …) or ' if is_option else ""
    return f"setting `{setting}` ({way}{variable_of(setting)})"


@contextmanager
def named_setting(name: str) -> Iterator[None]:
    """Say which setting an adapter, which knows nothing of settings, has found wrong, or names a
    place that it may not use, or a catalog or a storage that does not answer.
    """
    try:
        yield
    except (SettingsError, AccessError, CatalogUnavailableError, StorageUnavailableError) as error:
        raise type(error)(naming_setting(name, error)) from error


def naming_setting(name: str, error: FrazilError) -> str:
    """Return an error in one line that names a setting; of a catalog or a storage that does not
    answer, what to do, too. One that names a setting already says more: it stays as it is.
    """
    said = " ".join(str(error).split())
    if said.startswith("setting `"):
        return said
    remedy = ""
    if isinstance(error, CatalogUnavailableError):
        remedy = "; check that it runs, and that the setting is right"
    if isinstance(error, StorageUnavailableError):
        remedy = "; check that its server runs, and that this setting and its endpoint are right"
    return f"{setting_text(name)}: {said}{remedy}"


def refuse_unknown_variables(environment: Mapping[str, object]) -> None:
    """Refuse variables that mean nothing.
    Errors: `SettingsError` naming the first `FRAZIL_…` variable."""
    known = {variable_of(setting) for setting in SETTINGS}
    known |= {f"{variable}_FILE" for variable in known} | _OTHERS
    for variable, value in sorted(environment.items()):
        name = variable.upper()
        if not name.startswith(_PREFIX) or name in known or name.startswith(_TESTS):
            continue
        if not _is_injected(variable, str(value)):
            raise SettingsError(f"environment variable `{variable}`: {_no_such(name, known)}")


def refuse_unknown_keys(document: Mapping[str, object], source: object) -> None:
    """Refuse keys of a settings file that mean nothing."""
    groups = {setting.partition(".")[0] for setting in SETTINGS if "." in setting}
    named = (name for name, _ in flattened(document) if name not in groups)
    refuse_unknown_options(named, f"{source}: ")


def refuse_unknown_options(settings: Iterable[str], source: str = "") -> None:
    """Refuse unknown settings, such as those that a call names. The error begins with `source`."""
    for setting in settings:
        if setting not in SETTINGS:
            raise SettingsError(f"{source}setting `{setting}`: {_no_such(setting, SETTINGS)}")


def flattened(properties: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield each value under one name with dots: `{"s3": {"region": …}}` is `s3.region`."""
    for name, value in properties.items():
        if isinstance(value, Mapping):
            yield from flattened(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _no_such(name: str, known: Iterable[str]) -> str:
    hint = did_you_mean(name, known, prefix=_PREFIX) or "docs/reference/settings.md lists all"
    return f"there is no such setting; {hint}"


# --- Variables that Kubernetes sets for each service of a namespace ------------------------------
#
# For a service `frazil` or `frazil-metrics`: FRAZIL_METRICS_SERVICE_HOST and the like. The values
# have forms that tell them from misspelt settings (FRAZIL_SERVICE_HTTP_PORT=9000).

_ADDRESS, _NUMBER, _PROTOCOL = r"[0-9A-Fa-f.:]+", r"[0-9]{1,5}", r"tcp|udp|sctp"
_ONE_PORT = r"_PORT_[0-9]{1,5}_(TCP|UDP|SCTP)"
_INJECTED = (
    (r"_SERVICE_HOST", _ADDRESS),
    (r"_SERVICE_PORT(_[A-Z0-9_]+)?", _NUMBER),
    (rf"(_PORT|{_ONE_PORT})", rf"({_PROTOCOL})://.+"),
    (rf"{_ONE_PORT}_PROTO", _PROTOCOL),
    (rf"{_ONE_PORT}_PORT", _NUMBER),
    (rf"{_ONE_PORT}_ADDR", _ADDRESS),
)


def _is_injected(variable: str, value: str) -> bool:
    return any(
        re.fullmatch(rf"FRAZIL(_[A-Z0-9_]+)?{ending}", variable) and re.fullmatch(form, value)
        for ending, form in _INJECTED
    )
