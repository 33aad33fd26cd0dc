"""`frazil table orphans`: files in a table's folders that nothing names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from committer.cli.context.command_session import parse_identifier, run_with_parts
from committer.cli.context.common_options import AsJson, TableArgument, Yes
from committer.cli.context.operator_audit import ReasonOption, recorded_on_table
from committer.cli.output.durations import parse_duration_ms
from committer.cli.output.printing import age_text, confirm, counted, print_json, print_table, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from committer.cli.tables.orphan_report import Report, Wanted
    from committer.service.process.composition import Parts

# So many lines are for people; programs get all.
LISTED_MAX = 1_000
# A younger object may be of a writer that has not published yet, or of a commit on its way.
SAFE_AGE_MS = 86_400_000


def orphans(
    name: TableArgument,
    older_than: Annotated[
        str, typer.Option(metavar="AGE", help="Only what was written longer ago: 36h, 3d.")
    ] = "3d",
    remove: Annotated[bool, typer.Option("--remove", help="Remove them.")] = False,
    allow_outside_location: Annotated[
        bool,
        typer.Option(
            "--allow-outside-location",
            help="Remove also outside the table's location (write.data.path), where no table of"
            " another catalog writes.",
        ),
    ] = False,
    no_active_writers: Annotated[
        bool,
        typer.Option(
            "--no-active-writers",
            help="Allow an age under a day. Only if no writer, committer or engine works on the"
            " table.",
        ),
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
    reason: ReasonOption = None,
) -> None:
    """List files in a table's folders that nothing names: no metadata, snapshot, statistics,
    waiting or quarantined request, and no clean-up in progress.

    With --remove they are deleted: only files of a known kind, and each only if nothing names it at
    that moment.
    """
    from committer.cli.tables.orphan_report import Wanted, remove_orphans

    identifier, age_ms = parse_identifier(name), parse_duration_ms(older_than, "--older-than")
    if remove and age_ms < SAFE_AGE_MS and not no_active_writers:
        raise typer.BadParameter(
            "a file under a day old may belong to a writer that has not published yet; stop every"
            " writer, committer and engine of the table and add --no-active-writers",
            param_hint="--older-than",
        )

    wanted = Wanted(identifier, age_ms, outside=allow_outside_location, by_storage=remove)
    report = run_with_parts(lambda parts: _report(parts, wanted, as_json=as_json))
    if not remove or not report.objects:
        return
    question = f"Remove {counted(report.objects, 'object')}?"
    confirm(question, needed=not yes, refused="nothing was removed")

    async def work(parts: Parts) -> int:
        action = "table orphans --remove"
        async with recorded_on_table(parts, action, identifier, reason) as change:
            removed = await remove_orphans(parts, wanted)
            change.after = {"removed_objects": removed}
            return removed

    removed = run_with_parts(work)
    say(f"removed {counted(removed, 'object')}")


async def _report(parts: Parts, wanted: Wanted, *, as_json: bool) -> Report:
    """Print each orphan, then their total."""
    from committer.cli.tables.orphan_report import Report, describe, open_search

    search, ground = await open_search(parts, wanted.identifier)
    report = Report(await wanted.now_ms(search, parts.world))
    rows: list[tuple[object, ...]] = []
    async for orphan in search.find(before_ms=wanted.before_ms(report.now_ms)):
        report.add(orphan, outside=wanted.outside)
        if as_json:
            print_json(describe(orphan, report.now_ms))
        elif len(rows) < LISTED_MAX:
            age = age_text(report.now_ms - orphan.modified_ms)
            rows.append((orphan.location, orphan.kind, orphan.size_bytes, age, orphan.why_it_stays))
    if not as_json and rows:
        print_table(("object", "kind", "bytes", "age", "stays because"), rows)
    _say_totals(report, search.why_not_remove(), ground.shared)
    return report


def _say_totals(report: Report, why_not: str | None, shared: Sequence[str]) -> None:
    for kind, total in sorted(report.removable.items()):
        say(f"{kind}: {counted(total.objects, 'object')}, {total.size_bytes:,} bytes")
    listed = report.objects + report.staying.objects
    if not listed:
        say("nothing that old is in the table's folders unnamed")
    if report.staying.objects:
        say(f"never removed: {counted(report.staying.objects, 'object')}")
    if listed > LISTED_MAX:
        say(f"the first {LISTED_MAX:,} of {listed:,} are listed, all of them with --json")
    for folder in shared:
        say(f"not looked at: `{folder}`, which others write to as well")
    if why_not is not None:
        say(f"nothing may be removed now: {why_not}")
