"""`frazil namespace`: create, list, show, change and drop namespaces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from committer.cli.context.command_session import read_settings, run_with_parts
from committer.cli.context.common_options import AsJson
from committer.cli.context.property_changes import (
    PairsArgument,
    UnsetOption,
    parse_change,
    parse_pairs,
)
from committer.cli.output.printing import print_json, print_json_lines, print_table, say, show
from committer.cli.output.view import Facts
from committer.ports.capability_checks import check_namespace

if TYPE_CHECKING:
    from committer.service.process.composition import Parts

Namespace = tuple[str, ...]
NamespaceArgument = Annotated[str, typer.Argument(metavar="NAMESPACE", help="Such as db, or a.b.")]

app = typer.Typer(help="Create, show, change and drop namespaces.", no_args_is_help=True)


@app.command()
def create(
    name: NamespaceArgument,
    properties: Annotated[
        list[str] | None, typer.Option("--property", metavar="KEY=VALUE", help="May be repeated.")
    ] = None,
) -> None:
    """Create a namespace. One that is there already stays, and gets the properties."""
    namespace, wanted = _parse(name), parse_pairs(properties or (), hint="--property")
    _check_location(wanted)

    async def work(parts: Parts) -> None:
        check_namespace(parts.catalog.capabilities, namespace, has_properties=bool(wanted))
        await parts.catalog.create_namespace(namespace)
        if wanted:
            await parts.catalog.set_namespace_properties(namespace, wanted)

    run_with_parts(work, create=True)
    say(f"created namespace {name}")


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List all namespaces."""
    found = run_with_parts(lambda parts: parts.catalog.list_namespaces())
    if as_json:
        print_json_lines({"namespace": ".".join(one), "levels": one} for one in found)
    elif found:
        print_table(("namespace",), [(".".join(one),) for one in found])
    else:
        say(f"frazil: no namespace in {read_settings().catalog.all_properties}")


@app.command("show")
def show_(name: NamespaceArgument, as_json: AsJson = False) -> None:
    """Show a namespace: how many tables it has, and its properties."""
    namespace = _parse(name)

    async def work(parts: Parts) -> tuple[int, dict[str, str]]:
        properties = await parts.catalog.namespace_properties(namespace)
        return len(await parts.catalog.list_tables(namespace)), properties

    tables, properties = run_with_parts(work)
    if as_json:
        print_json({"namespace": name, "tables": tables, "properties": properties})
    else:
        show([Facts(name, {"tables": tables}), Facts("properties", properties)])


@app.command("set")
def set_(
    name: NamespaceArgument,
    properties: PairsArgument = None,
    unset: UnsetOption = None,
) -> None:
    """Set properties of a namespace, and remove some. Tables that exist stay where they are."""
    namespace, change = _parse(name), parse_change(properties, unset)
    _check_location(change.wanted)

    async def work(parts: Parts) -> None:
        check_namespace(parts.catalog.capabilities, namespace, has_properties=True)
        await parts.catalog.set_namespace_properties(
            namespace, change.wanted, removed=change.removed
        )

    run_with_parts(work)
    say(f"namespace {name}: {change}")


@app.command()
def drop(name: NamespaceArgument) -> None:
    """Drop a namespace that is empty, with its properties. It never drops a table."""
    namespace = _parse(name)
    run_with_parts(lambda parts: parts.catalog.drop_namespace(namespace))
    say(f"dropped namespace {name}")


def _check_location(properties: Mapping[str, str]) -> None:
    """Refuse a folder of new tables in which no table may be. Errors: `typer.BadParameter`."""
    location = properties.get("location")
    refusal = read_settings().allowed_locations.table_refusal(location) if location else None
    if refusal is not None:
        raise typer.BadParameter(refusal)


def _parse(text: str) -> Namespace:
    """Parse a name from the command line. Errors: `typer.BadParameter`."""
    levels = tuple(text.split("."))
    if not all(levels) or "/" in text or not text.isprintable():
        raise typer.BadParameter(
            f"`{text}`: expected levels joined by dots (db, a.b), without `/` and control"
            " characters"
        )
    return levels
