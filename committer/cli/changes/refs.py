"""`frazil table branch` and `tag`: create, replace, remove and list. One set of commands for both,
as they differ in few options.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from committer.cli.changes.branch_preview import announce_move
from committer.cli.changes.send import Order, WaitOptions, send
from committer.cli.context.command_session import checked_branch, parse_identifier, run_with_parts
from committer.cli.context.common_options import AsJson, TableArgument, Yes
from committer.cli.context.option_groups import grouped
from committer.cli.output.durations import parse_duration_ms
from committer.cli.output.printing import confirm, print_json_lines, print_table

if TYPE_CHECKING:
    from committer.iceberg.metadata.table_metadata import TableMetadata

branches = typer.Typer(
    help="Create, replace, remove and list the branches of a table.", no_args_is_help=True
)
tags = typer.Typer(
    help="Create, replace, remove and list the tags of a table.", no_args_is_help=True
)

Name = Annotated[
    str, typer.Argument(callback=checked_branch, help="The name of the branch or tag.")
]
_Kind = Literal["branch", "tag"]
_IfNotExists = Annotated[
    bool, typer.Option("--if-not-exists", help="Change nothing if there is one of this name.")
]
_IfExists = Annotated[
    bool, typer.Option("--if-exists", help="Change nothing if there is none of this name.")
]
_RefAge = Annotated[
    str | None,
    typer.Option("--max-ref-age", metavar="AGE", help="Remove it once its snapshot is so old: 7d."),
]


@dataclass(frozen=True, slots=True)
class At:
    """The options that name a snapshot."""

    snapshot: Annotated[int | None, typer.Option("--snapshot", help="Its id.")] = None
    ref: Annotated[
        str | None,
        typer.Option("--ref", help="A branch or tag that names it. Default: the head of main."),
    ] = None

    def document(self) -> dict[str, object]:
        """Return the keys of a change that names it. Errors: `typer.BadParameter` for both."""
        if self.snapshot is not None and self.ref is not None:
            raise typer.BadParameter("expected at most one of --snapshot and --ref, found both")
        said = {"snapshot-id": self.snapshot, "ref": self.ref}
        return {key: one for key, one in said.items() if one is not None}


@dataclass(frozen=True, slots=True)
class BranchRetention:
    """The options of what a branch keeps."""

    max_ref_age: _RefAge = None
    max_snapshot_age: Annotated[
        str | None,
        typer.Option("--max-snapshot-age", metavar="AGE", help="Keep its snapshots so long: 3d."),
    ] = None
    min_snapshots: Annotated[
        int | None,
        typer.Option("--min-snapshots", min=1, help="Keep so many snapshots whatever their age."),
    ] = None

    def document(self) -> dict[str, object]:
        return {
            **_age("max-ref-age-ms", self.max_ref_age, "--max-ref-age"),
            **_age("max-snapshot-age-ms", self.max_snapshot_age, "--max-snapshot-age"),
            **({} if self.min_snapshots is None else {"min-snapshots-to-keep": self.min_snapshots}),
        }


def _age(key: str, text: str | None, option: str) -> dict[str, object]:
    return {} if text is None else {key: parse_duration_ms(text, option)}


# --- Create, replace, remove ---------------------------------------------------------------------


@branches.command("create")
@grouped
def create_branch(
    table: TableArgument,
    name: Name,
    at: At,
    retention: BranchRetention,
    waiting: WaitOptions,
    if_not_exists: _IfNotExists = False,
) -> None:
    """Create a branch. Producers may then publish to it."""
    rest = {**at.document(), **retention.document()}
    send(_creation("branch", table, name, rest, if_not_exists), waiting)


@tags.command("create")
@grouped
def create_tag(
    table: TableArgument,
    name: Name,
    at: At,
    waiting: WaitOptions,
    max_ref_age: _RefAge = None,
    if_not_exists: _IfNotExists = False,
) -> None:
    """Create a tag: a name that a snapshot keeps."""
    rest = {**at.document(), **_age("max-ref-age-ms", max_ref_age, "--max-ref-age")}
    send(_creation("tag", table, name, rest, if_not_exists), waiting)


def _creation(
    kind: _Kind, table: str, name: str, rest: dict[str, object], if_not_exists: bool
) -> Order:
    change = {"action": f"create-{kind}", "name": name, **rest, "if-not-exists": if_not_exists}
    return Order(f"table {kind} create", table, f"{kind} `{name}` is there", [change])


@branches.command("replace")
@grouped
def replace_branch(
    table: TableArgument, name: Name, at: At, waiting: WaitOptions, yes: Yes = False
) -> None:
    """Let a branch name another snapshot, related or not; its retention stays.

    Producers whose commits are no longer in its history freeze, as after a rollback. The command
    lists them, and asks if there are any.
    """
    order = _replacement("branch", table, name, at)
    frozen = announce_move(order, name)
    confirm(f"Replace branch `{name}` of {table}?", needed=frozen > 0 and not yes)
    send(order, waiting)


@tags.command("replace")
@grouped
def replace_tag(table: TableArgument, name: Name, at: At, waiting: WaitOptions) -> None:
    """Let a tag name another snapshot; its retention stays."""
    send(_replacement("tag", table, name, at), waiting)


def _replacement(kind: _Kind, table: str, name: str, at: At) -> Order:
    change = {"action": f"replace-{kind}", "name": name, **at.document()}
    return Order(f"table {kind} replace", table, f"{kind} `{name}` is replaced", [change])


@branches.command("remove")
@grouped
def remove_branch(
    table: TableArgument, name: Name, waiting: WaitOptions, if_exists: _IfExists = False
) -> None:
    """Remove a branch other than main. What only it needs may expire then."""
    send(_removal("branch", table, name, if_exists), waiting)


@tags.command("remove")
@grouped
def remove_tag(
    table: TableArgument, name: Name, waiting: WaitOptions, if_exists: _IfExists = False
) -> None:
    """Remove a tag. What only it needs may expire then."""
    send(_removal("tag", table, name, if_exists), waiting)


def _removal(kind: _Kind, table: str, name: str, if_exists: bool) -> Order:
    change = {
        "action": "remove-snapshot-ref",
        "ref-name": name,
        "type": kind,
        "if-exists": if_exists,
    }
    return Order(f"table {kind} remove", table, f"{kind} `{name}` is removed", [change])


# --- List ----------------------------------------------------------------------------------------


@branches.command("list")
def list_branches(table: TableArgument, as_json: AsJson = False) -> None:
    """List the branches, with their snapshots and what they keep."""
    _list("branch", table, as_json)


@tags.command("list")
def list_tags(table: TableArgument, as_json: AsJson = False) -> None:
    """List the tags, with their snapshots and how long they stay."""
    _list("tag", table, as_json)


def _list(kind: _Kind, name: str, as_json: bool) -> None:
    from committer.cli.views.kind_views import kind_view

    identifier = parse_identifier(name)
    table = run_with_parts(lambda parts: parts.catalog.load(identifier))
    found = _described(table.metadata, kind)
    if as_json:
        print_json_lines(found)
        return
    view = kind_view("branches or tags", found)
    print_table(view.headers, view.rows)


def _described(metadata: TableMetadata, kind: _Kind) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for name, ref in sorted(metadata.refs.items()):
        snapshot = metadata.snapshot_by_id(ref.snapshot_id)
        if ref.type == kind:
            found.append(
                {
                    "name": name,
                    "snapshot_id": ref.snapshot_id,
                    "timestamp_ms": None if snapshot is None else snapshot.timestamp_ms,
                    "min_snapshots_to_keep": ref.min_snapshots_to_keep,
                    "max_snapshot_age_ms": ref.max_snapshot_age_ms,
                    "max_ref_age_ms": ref.max_ref_age_ms,
                }
            )
    return found
