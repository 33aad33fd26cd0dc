"""What commands share: settings, the parts that they open, and an event loop for as long."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit, urlunsplit

import typer

if TYPE_CHECKING:
    from committer.request import TableIdentifier
    from committer.service.parts import Parts, RequestParts
    from committer.settings import Settings

T = TypeVar("T")


def read_settings() -> Settings:
    """All settings. Errors: `SettingsError`."""
    from committer.settings import load_settings

    return load_settings()


def run_with_parts(work: Callable[[Parts], Awaitable[T]], *, create: bool = False) -> T:
    """Open everything, do the work, close. `create`: make a DynamoDB table that is missing."""
    from committer.service.parts import open_parts

    async def run() -> T:
        parts = await open_parts(read_settings(), create=create)
        try:
            return await work(parts)
        finally:
            await parts.close()

    return asyncio.run(run())


def run_with_requests(work: Callable[[RequestParts], Awaitable[T]]) -> T:
    """Open all but the catalog, do the work, close."""
    from committer.service.parts import open_request_parts

    async def run() -> T:
        parts = open_request_parts(read_settings())
        try:
            return await work(parts)
        finally:
            await parts.close()

    return asyncio.run(run())


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
