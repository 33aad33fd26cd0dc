"""Shared by the commands: settings, the parts that they open, and an event loop for as long."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from committer.errors import (
    AccessError,
    CatalogUnavailableError,
    NoSuchNamespaceError,
    NoSuchTableError,
    PublishError,
    SettingsError,
)
from committer.ledger_entry import MAIN
from committer.settings.setting_names import naming_setting

if TYPE_CHECKING:
    from pathlib import Path

    from committer.ports.pointer_swap import LoadedTable
    from committer.request.table_identifier import TableIdentifier
    from committer.service.process.composition import Parts, RequestParts
    from committer.settings.service_settings import Settings

T = TypeVar("T")
_Parts = TypeVar("_Parts", bound="RequestParts")

# Of every command and of `serve`.
CatalogName = Annotated[
    str | None,
    typer.Option(
        "--catalog", metavar="NAME", help="A catalog of Frazil's or PyIceberg's configuration."
    ),
]
# The name of `frazil --catalog NAME …`, for as long as the command runs.
chosen_catalog: ContextVar[str | None] = ContextVar("chosen_catalog", default=None)


def read_settings(*, catalog: str | None = None, **overrides: object) -> Settings:
    """Read all settings. `catalog`: the name that the command gives. Errors: `SettingsError`."""
    from committer.settings.service_settings import load_settings

    name = catalog or chosen_catalog.get()
    return load_settings(**overrides, **({"catalog": {"asked_for": name}} if name else {}))


def run_with_parts(work: Callable[[Parts], Awaitable[T]], *, create: bool = False) -> T:
    """Open everything, do the work, close. `create`: make a catalog that is missing."""
    from committer.service.process.composition import open_parts

    return _run(partial(open_parts, create=create), work)


def run_with_requests(work: Callable[[RequestParts], Awaitable[T]]) -> T:
    """Open all but the catalog, do the work, close."""
    from committer.service.process.composition import open_request_parts

    async def opened(settings: Settings) -> RequestParts:
        return open_request_parts(settings)

    return _run(opened, work)


def _run(
    opened: Callable[[Settings], Awaitable[_Parts]], work: Callable[[_Parts], Awaitable[T]]
) -> T:
    import asyncio

    settings = read_settings()

    async def run() -> T:
        parts = await opened(settings)
        try:
            return await work(parts)
        finally:
            await parts.close()

    with explained(settings):
        return asyncio.run(run())


@contextmanager
def explained(settings: Settings) -> Iterator[None]:
    """Say in which catalog a name was looked up, which setting names a catalog that does not
    answer, and whose a home is that may not be used.
    """
    properties = settings.catalog.all_properties
    with named_owner(settings):
        try:
            yield
        except CatalogUnavailableError as error:
            said = naming_setting(f"catalog.{properties.address}", error)
            raise CatalogUnavailableError(said) from error
        except (NoSuchTableError, NoSuchNamespaceError) as error:
            raise type(error)(f"{error} in {properties}") from error


@contextmanager
def named_owner(settings: Settings) -> Iterator[None]:
    """Say whose a home is that may not be used."""
    try:
        yield
    except (AccessError, SettingsError) as error:
        remedy = _remedy(settings.home)
        if not remedy:
            raise
        raise type(error)(f"{error}; {remedy}") from error


def _remedy(home: Path) -> str:
    owner = home.stat().st_uid if home.is_dir() else os.geteuid()
    if owner == os.geteuid():
        return ""
    return f"the home `{home}` belongs to user {owner}: name one of yours by FRAZIL_HOME"


@contextmanager
def usage_error(option: str | None = None) -> Iterator[None]:
    """Report what was typed, and cannot be, as a usage error, of an option if one is named."""
    try:
        yield
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def checked_branch(text: str) -> str:
    """Return the name of a branch from the command line, if a request can name it.
    Errors: `typer.BadParameter`.
    """
    from committer.request.request_model import Name

    name: str = checked(Name, text)
    return name


def require_branch(table: LoadedTable, branch: str, *, nothing: str) -> None:
    """Check that a branch exists: no request but one for `main` may begin it. `nothing`: what was
    not done. Errors: `PublishError`.
    """
    if branch not in (MAIN, *table.metadata.branches):
        raise PublishError(
            f"table `{table.identifier}` has no branch `{branch}`: make it with"
            f" `frazil table branch create`; nothing was {nothing}"
        )


def checked_producer(text: str) -> str:
    """Return a producer's id from the command line, if a request can have it.
    Errors: `typer.BadParameter`.
    """
    from committer.request.commit_request import ProducerId

    producer: str = checked(ProducerId, text)
    return producer


def checked(kind: Any, value: object) -> Any:
    """Return a value as a request has it. Errors: `typer.BadParameter`, naming the key in it."""
    from pydantic import TypeAdapter, ValidationError

    from committer.request.request_model import problem_text

    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        keys = ".".join(one for one in first["loc"] if isinstance(one, str))
        where = f"{keys}: " if keys else ""
        raise typer.BadParameter(f"{where}{problem_text(first)}") from None


def parse_identifier(text: str) -> TableIdentifier:
    """Parse a table's name from the command line. Errors: `typer.BadParameter`."""
    from committer.request.table_identifier import TableIdentifier

    with usage_error():
        return TableIdentifier.parse(text)
