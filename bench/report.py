"""A run as a page: the environment, the targets, a table for each scenario. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from bench.records import Group
from bench.statistics import Spread
from bench.systems import TITLES
from bench.targets import Groups, Target, targets

SCENARIO_TITLES = {
    "a": "(a) Closed loop: each writer waits for its commit before its next one-file request",
    "b": "(b) The same, with 25 ms added to every storage call",
    "c": "(c) Open loop: producers wait until a request is durable",
    "d": "(d) One commit of many files, from the descriptors in memory to the receipt",
    "e": "(e) A one-file commit on large tables, and after many commits",
    "f": "(f) Closed loop: each writer deletes, upserts or overwrites rows of its own partition",
    "g": "(g) A stream of row deltas, alone and beside a compaction of the same table",
}
# Title and name of each value; only those that some system has are shown.
COLUMNS = {
    "a": (
        ("landed", "landed"),
        ("failed", "failed"),
        ("landed/s", "landed_per_s"),
        ("p50 ms", "p50_ms"),
        ("p99 ms", "p99_ms"),
        ("p50 from durable", "p50_durable_ms"),
        ("p99 from durable", "p99_durable_ms"),
        ("commit ms", "commit_ms"),
        ("cycle ms", "cycle_ms"),
        ("batch", "batch_median"),
        ("largest", "batch_max"),
        ("committer µs", "committer_us"),
        ("publishers µs", "publishers_us"),
        ("Valkey µs", "valkey_us"),
        ("writers µs", "writers_us"),
        ("attempts", "attempts_per_landed"),
    ),
    "c": (
        ("landed", "landed"),
        ("landed/s", "landed_per_s"),
        ("durable/s", "durable_per_s"),
        ("all durable s", "durable_after_s"),
        ("all committed s", "committed_after_s"),
        ("commits", "commits"),
        ("batch", "batch_median"),
        ("committer µs", "committer_us"),
        ("publishers µs", "publishers_us"),
        ("Valkey µs", "valkey_us"),
    ),
    "d": (
        ("ms", "commit_of_files_ms"),
        ("files/s", "files_per_s"),
        ("commits", "commits"),
        ("read/s", "read_files_per_s"),
        ("check/s", "check_files_per_s"),
        ("join/s", "join_files_per_s"),
        ("write/s", "write_files_per_s"),
        ("checked files/s", "checked_files_per_s"),
        ("moved files/s", "moved_files_per_s"),
    ),
    "e": (
        ("ms", "one_file_ms"),
        ("fresh table ms", "fresh_table_ms"),
        ("ratio", "ratio"),
        ("commits", "commits"),
        ("metadata.json bytes", "metadata_json_bytes"),
        ("bytes per commit", "metadata_bytes_per_commit"),
        ("manifest lists", "manifest_list_bytes"),
        ("manifests", "manifest_bytes"),
        ("snapshots", "snapshots"),
        ("manifest files", "manifests"),
    ),
}
COLUMNS["g"] = (
    ("landed", "landed"),
    ("failed", "failed"),
    ("p50 ms", "p50_ms"),
    ("p99 ms", "p99_ms"),
    ("largest ms", "max_ms"),
    ("compaction s", "compaction_s"),
    ("groups landed", "groups_landed"),
    ("lost", "groups_lost"),
    ("retried", "groups_retried"),
    ("its commits ms", "part_ms"),
    ("the longest", "part_max_ms"),
)
COLUMNS["b"] = COLUMNS["f"] = COLUMNS["a"]
_LEGEND = """\
Medians of the rounds, with their range where there were several. "failed": requests whose commit
was given up, as each system does by default. "landed/s" counts what landed inside the window;
latencies count the stragglers too. "commit ms": from planning to the swap's answer, as the
committer logs it. "cycle ms": from one landed commit to the next. µs are CPU time per landed
request, of all threads of a party. "proven": PyIceberg found exactly the files that had landed,
none twice; of (f), the deletes and overwrites that had landed. Java's writers check their commits
as Spark asks for it; a commit that is given up counts as failed, and the writer tries again. (g):
latencies and failures are the stream's; "failed" are deltas of files that the compaction had
rewritten. A lost group is rewritten again in the next pass, on the table as it is by then.
"""


def print_report(
    environment: Mapping[str, str], groups: Groups, plots: Sequence[str], notes: Iterable[str]
) -> str:
    parts = [
        "# Benchmark\n",
        table(("what", "with"), environment.items()),
        "## Targets, at interval 0\n",
        _targets_table(targets(groups)),
        *(f"{note}\n" for note in notes),
        _LEGEND,
    ]
    for scenario, title in SCENARIO_TITLES.items():
        found = {key[1:]: group for key, group in groups.items() if key[0] == scenario}
        if found:
            parts += [f"## {title}\n", _scenario_table(scenario, found)]
            parts += [f"![{name}]({name})\n" for name in plots if name.startswith(f"{scenario}-")]
    return "\n".join(parts)


def _targets_table(found: Sequence[Target]) -> str:
    rows = (
        (f"({t.scenario})", t.text, f"{t.relation} {t.wanted:g}", number(t.found), t.verdict)
        for t in found
    )
    return table(("", "target", "wanted", "found", "verdict"), rows)


def _scenario_table(scenario: str, groups: Mapping[tuple[str, str], Group]) -> str:
    columns = [
        (title, name)
        for title, name in COLUMNS[scenario]
        if any(name in group.spreads for group in groups.values())
    ]
    head = ("system", "case", "rounds", *(title for title, _ in columns), "proven", "remarks")
    rows = (
        (
            TITLES.get(system, system),
            case,
            str(group.rounds),
            *(spread(group.spreads.get(name)) for _, name in columns),
            "yes" if group.is_proven else "NO",
            "; ".join(_remarks(group)),
        )
        for (system, case), group in groups.items()
    )
    return table(head, rows)


def _remarks(group: Group) -> Iterator[str]:
    for name in ("stopped", "errors"):
        if text := group.texts.get(name):
            yield text


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def spread(found: Spread | None) -> str:
    """Format as `684 (649–1,012)`; empty if there is no value."""
    if found is None or math.isnan(found.median):
        return ""
    middle = number(found.median)
    least, greatest = number(found.least), number(found.greatest)
    return middle if least == greatest else f"{middle} ({least}–{greatest})"


def number(value: float) -> str:
    """Format with three significant digits and no exponent; `–` if not measured."""
    if math.isnan(value):
        return "–"
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}"
