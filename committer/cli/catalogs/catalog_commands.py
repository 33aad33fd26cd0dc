"""`frazil catalog`: which catalogs are configured, and what the chosen one can do."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import typer

from committer.cli.context.command_session import read_settings, run_with_requests
from committer.cli.context.common_options import AsJson
from committer.cli.output.printing import print_json, print_json_lines, print_table, say, show
from committer.cli.output.view import Facts, Rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from committer.catalog.catalog_properties import CatalogProperties
    from committer.cli.catalogs.catalog_report import CatalogReport
    from committer.settings.service_settings import Settings

app = typer.Typer(help="Check and list catalogs.", no_args_is_help=True)


@app.command()
def check(as_json: AsJson = False) -> None:
    """Probe the catalog, the warehouse and the inbox, and say what the catalog can do.

    Probes write and remove an object of their own; a missing catalog is not made. Exit code 1 if
    something that a committer needs is missing.
    """
    from committer.cli.catalogs.catalog_report import check_catalog, describe_report

    settings = read_settings()
    report = run_with_requests(check_catalog)
    if as_json:
        print_json(describe_report(report, settings))
    else:
        _show(report, settings)
    for failed in report.failed:
        say(f"frazil: {failed.error}")
    if report.failed:
        raise typer.Exit(1)


def _show(report: CatalogReport, settings: Settings) -> None:
    from committer.cli.catalogs.catalog_report import (
        NOT_TRIED,
        describe_abilities,
        unread_properties,
    )

    rows = [
        (check.name, "ok" if check.error is None else "FAILED", check.meaning)
        for check in report.checks
    ]
    title = str(settings.catalog.all_properties)
    show([Rows(title, ("check", "result", "what was tried"), rows)])
    if abilities := describe_abilities(report):
        show([Facts("\nwhat it can do", abilities)])
    say(f"not tried: {NOT_TRIED}")
    if unread := unread_properties(settings):
        names = ", ".join(f"`{name}`" for name in unread)
        say(f"Frazil does not read these properties of PyIceberg's configuration: {names}")


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the catalogs of Frazil's settings and of PyIceberg's configuration.

    The first one is what commands use; `frazil --catalog NAME …` chooses another.
    """
    settings = read_settings()
    found = [
        {
            "catalog": one.name,
            "chosen": one.name == settings.catalog.name,
            "kind": _kind(one),
            "uri": one.shown_uri,
            "warehouse": one.warehouse,
        }
        for one in _configured(settings)
    ]
    if as_json:
        print_json_lines(found)
    else:
        print_table(
            ("catalog", "chosen", "kind", "uri", "warehouse"),
            [tuple(one.values()) for one in found],
        )


def _configured(settings: Settings) -> Iterator[CatalogProperties]:
    from committer.catalog.catalog_properties import CatalogProperties
    from committer.settings.pyiceberg_config import read_pyiceberg_catalogs

    chosen = settings.catalog.all_properties
    yield chosen
    for name, values in sorted(read_pyiceberg_catalogs(os.environ).items()):
        if name != chosen.name.lower():
            yield CatalogProperties(name, values)


def _kind(properties: CatalogProperties) -> str:
    """Return the kind; of a catalog that no adapter serves, that it has none."""
    from committer.errors import SettingsError

    try:
        return properties.kind.value
    except SettingsError:
        return "no adapter"
