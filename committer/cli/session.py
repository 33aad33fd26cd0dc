"""What commands share: settings, the parts that they open, and an event loop for as long."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit, urlunsplit

import typer

if TYPE_CHECKING:
    from pathlib import Path

    from committer.request import TableIdentifier
    from committer.service.parts import Parts, RequestParts
    from committer.settings import Settings

T = TypeVar("T")


def read_settings(**overrides: object) -> Settings:
    """All settings. Errors: `SettingsError`."""
    from committer.settings import load_settings

    return load_settings(**overrides)


def run_with_parts(work: Callable[[Parts], Awaitable[T]], *, create: bool = False) -> T:
    """Open everything, do the work, close. `create`: make a catalog that is missing."""
    from committer.service.parts import open_parts

    settings = read_settings()

    async def run() -> T:
        parts = await open_parts(settings, create=create)
        try:
            return await work(parts)
        finally:
            await parts.close()

    with explained(settings):
        return asyncio.run(run())


def run_with_requests(work: Callable[[RequestParts], Awaitable[T]]) -> T:
    """Open all but the catalog, do the work, close."""
    from committer.service.parts import open_request_parts

    settings = read_settings()

    async def run() -> T:
        parts = open_request_parts(settings)
        try:
            return await work(parts)
        finally:
            await parts.close()

    with explained(settings):
        return asyncio.run(run())


@contextmanager
def explained(settings: Settings) -> Iterator[None]:
    """Say in which catalog a name was looked up, and whose a home is that may not be used."""
    from committer.errors import (
        AccessError,
        NoSuchNamespaceError,
        NoSuchTableError,
        SettingsError,
    )

    try:
        yield
    except (NoSuchTableError, NoSuchNamespaceError) as error:
        raise type(error)(f"{error} in {catalog_text(settings)}") from error
    except (AccessError, SettingsError) as error:
        remedy = _remedy(settings.home)
        if not remedy:
            raise
        raise type(error)(f"{error}; {remedy}") from error


def catalog_text(settings: Settings) -> str:
    """The catalog that a command looks in."""
    return f"catalog `{settings.catalog.name}` ({without_secrets(settings.catalog.uri)})"


def _remedy(home: Path) -> str:
    owner = home.stat().st_uid if home.is_dir() else os.geteuid()
    if owner == os.geteuid():
        return ""
    return f"the home `{home}` belongs to user {owner}: name one of yours by FRAZIL_HOME"


def parse_identifier(text: str) -> TableIdentifier:
    """A table's name from the command line. Errors: `typer.BadParameter`."""
    from committer.request import TableIdentifier

    try:
        return TableIdentifier.parse(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def without_secrets(url: str) -> str:
    """A URL that may be printed."""
    parts = urlsplit(url)
    if "@" not in parts.netloc and not parts.query:
        return url
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query=""))
