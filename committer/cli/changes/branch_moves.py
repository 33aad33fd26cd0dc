"""Commands that move a branch: fast-forward, rollback, publish and cherry-pick."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from committer.cli.changes.branch_preview import announce_move
from committer.cli.changes.send import Order, WaitOptions, send
from committer.cli.context.command_session import checked_branch
from committer.cli.context.common_options import TableArgument, Yes
from committer.cli.context.option_groups import grouped
from committer.cli.output.printing import confirm
from committer.cli.views.table_source import parse_time_ms

_Branch = Annotated[
    str, typer.Option("--branch", callback=checked_branch, help="The branch to move.")
]


@grouped
def fast_forward(
    table: TableArgument,
    branch: Annotated[
        str, typer.Argument(callback=checked_branch, help="The branch to move: main.")
    ],
    to: Annotated[
        str,
        typer.Argument(
            callback=checked_branch, help="The branch or tag whose snapshot becomes its head."
        ),
    ],
    waiting: WaitOptions,
) -> None:
    """Move a branch to the head of another one that descends from its own.

    Publishes at once all that was written to a branch for an audit. A branch that does not exist is
    created. If the branch has got commits that the other one lacks, nothing is changed.
    """
    change = {"action": "fast-forward", "branch": branch, "to": to}
    done = f"branch `{branch}` is at `{to}`"
    send(Order("table fast-forward", table, done, [change]), waiting)


@dataclass(frozen=True, slots=True)
class _Target:
    """The options of where to roll back to."""

    snapshot: Annotated[int | None, typer.Option("--snapshot", help="To this snapshot.")] = None
    before: Annotated[
        str | None,
        typer.Option(
            "--before",
            metavar="TIME",
            help="To the last snapshot before a time: 2026-05-01T12:00:00Z, or milliseconds.",
        ),
    ] = None
    non_ancestor: Annotated[
        bool,
        typer.Option(
            "--allow-non-ancestor", help="Also to a --snapshot that is no ancestor of the head."
        ),
    ] = False

    def change(self) -> dict[str, object]:
        """Return the change that moves a branch there. Errors: `typer.BadParameter`."""
        if (self.snapshot is None) == (self.before is None):
            found = "none" if self.before is None else "both"
            raise typer.BadParameter(f"expected one of --snapshot and --before, found {found}")
        if self.before is not None:
            if self.non_ancestor:
                raise typer.BadParameter("--allow-non-ancestor goes with --snapshot")
            time_ms = parse_time_ms(self.before, "--before")
            return {"action": "rollback-to-timestamp", "timestamp-ms": time_ms}
        action = "set-current-snapshot" if self.non_ancestor else "rollback-to-snapshot"
        return {"action": action, "snapshot-id": self.snapshot}


@grouped
def rollback(
    table: TableArgument,
    target: _Target,
    waiting: WaitOptions,
    branch: _Branch = "main",
    yes: Yes = False,
) -> None:
    """Move a branch back to an earlier snapshot.

    Producers whose commits leave the history of the branch freeze: nothing of theirs lands until
    `frazil producer thaw` says whether they do the lost epochs again. They are listed before.
    """
    done = f"branch `{branch}` is rolled back"
    order = Order("table rollback", table, done, [target.change()], branch)
    announce_move(order, branch)
    confirm(f"Roll back branch `{branch}` of {table}?", needed=not yes)
    send(order, waiting)


@grouped
def publish(
    table: TableArgument,
    wap_id: Annotated[str, typer.Argument(help="The `wap.id` that the snapshot was staged with.")],
    waiting: WaitOptions,
    branch: _Branch = "main",
) -> None:
    """Publish a staged snapshot: one that was written for an audit, without a branch.

    If the branch has not moved since it was staged, it becomes the head; else its files are added
    again. Each `wap.id` is published once.
    """
    done = f"`{wap_id}` is published"
    order = _pick("table publish", table, {"wap-id": wap_id}, done, branch)
    send(order, waiting)


@grouped
def cherry_pick(
    table: TableArgument,
    snapshot: Annotated[int, typer.Argument(help="The id of the snapshot.")],
    waiting: WaitOptions,
    branch: _Branch = "main",
) -> None:
    """Apply a snapshot that the branch does not have to it: an append, or a replacement of
    partitions to which nothing was added since. Each snapshot is picked once.
    """
    done = f"snapshot {snapshot} is in branch `{branch}`"
    order = _pick("table cherry-pick", table, {"source-snapshot-id": snapshot}, done, branch)
    send(order, waiting)


def _pick(command: str, table: str, needs: dict[str, object], done: str, branch: str) -> Order:
    return Order(command, table, done, (), branch, operation="cherry-pick", needs=needs)
