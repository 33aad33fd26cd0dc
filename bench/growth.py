"""Scenario (e): measures one-file commits on large tables, and after many commits.

A machine is not equally fast at two moments minutes apart. So what is compared is measured in
turns at one moment: tables of all sizes one after another, and a table with a long history beside a
fresh one.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from bench.frazil import PUBLISHERS, Frazil
from bench.peers.program import Peer
from bench.plan import Plan
from bench.records import Record, Recorder, Value
from bench.statistics import median, ratio
from bench.systems import JAVA_FAST, PYICEBERG, Systems, load_average, open_systems
from bench.tables import Counted

_COMMITS = 20  # of each table in a turn
_TURNS = 3
_FIRST = 10_000_000  # a file beyond all others
_BIG_COMMITS = 100
_CHUNK = 500
_WHOLE_S = 600.0
# So that expiry works within minutes: snapshots older than a second go, but for a hundred.
_EXPIRING = {
    "frazil.expire.enabled": "true",
    "history.expire.max-snapshot-age-ms": "1000",
    "history.expire.min-snapshots-to-keep": "100",
    "write.metadata.delete-after-commit.enabled": "true",
}
# So that nothing that was written goes before it is counted.
_KEEPING = {"write.metadata.delete-after-commit.enabled": "false"}


def run(plan: Plan, recorder: Recorder) -> None:
    with open_systems(plan) as systems:
        _existing_files(plan, recorder, systems)
        _metadata_bytes(plan, recorder, systems)
        if systems.frazil is not None:
            _history(plan, recorder, systems.frazil)


# --- Existing files ------------------------------------------------------------------------------


def _existing_files(plan: Plan, recorder: Recorder, systems: Systems) -> None:
    load = load_average()
    times_ms: dict[tuple[str, int], list[float]] = {}
    counted: dict[tuple[str, int], Counted] = {}
    frazil, peers = systems.frazil, systems.peers
    if frazil is not None:
        tables = {files: _fill(frazil, files) for files in plan.existing_files}
        for turn in range(_TURNS):
            for files, table in tables.items():
                found = _commits(frazil, table, turn * _COMMITS)
                times_ms.setdefault((frazil.name, files), []).extend(found)
        for files, table in tables.items():
            counted[frazil.name, files] = frazil.tables.count(table)
    for name, peer in peers.items():
        if name == PYICEBERG and JAVA_FAST in peers:
            filled = _lend(peers[JAVA_FAST], peer, plan)
        else:
            filled = {files: _fill_peer(peer, files) for files in plan.existing_files}
        for turn in range(_TURNS):
            for files, table in filled.items():
                start = _FIRST + turn * _COMMITS
                answer = peer.commits(table, count=_COMMITS, start=start, limit_s=20.0)
                times_ms.setdefault((name, files), []).extend(answer["ms"])
        for files, table in filled.items():
            counted[name, files] = peer.program.tables.count(table)
    for (name, files), found in times_ms.items():
        first = median(times_ms[name, plan.existing_files[0]])
        values: dict[str, Value] = {
            "one_file_ms": median(found),
            "ratio": ratio(median(found), first),
            "proven": counted[name, files].proves(files + len(found)),
            "load_average": load,
        }
        recorder.add(Record("e", name, f"{files:,} existing files", 0, values))


def _fill(frazil: Frazil, files: int) -> str:
    """Create a table of so many files, from at most a thousand requests."""
    table = frazil.fresh_table()
    each = max(1, files // 1_000)
    count = files // each // PUBLISHERS
    producers = [
        list(range(number * count + 1, (number + 1) * count + 1)) for number in range(PUBLISHERS)
    ]
    counts = [count] * PUBLISHERS
    frazil.prepare(table, counts, files=each, files_a_day=max(1, files // 100), writers=producers)
    frazil.run(table, "commit", producers, until_landed=count * PUBLISHERS)
    return table


def _commits(frazil: Frazil, table: str, epoch: int) -> list[float]:
    """Return milliseconds from the call to the receipt, of commits one after another."""
    frazil.prepare(table, [_COMMITS, 0], start=_FIRST + epoch)
    outcome = frazil.run(table, "contend", [[0], []], window_s=_WHOLE_S, epoch=epoch)
    return [(ended - called) * 1_000 for called, _, ended in outcome.requests]


def _fill_peer(peer: Peer, files: int) -> str:
    table = peer.program.fresh_table()
    count = min(_BIG_COMMITS, files)
    peer.commits(
        table,
        count=count,
        files=files // count,
        files_a_day=max(1, files // 100),
        limit_s=_WHOLE_S,
    )
    return table


def _lend(owner: Peer, borrower: Peer, plan: Plan) -> dict[int, str]:
    """Register Java's tables in PyIceberg's catalog: filling them there takes minutes."""
    lent = {}
    for files in plan.existing_files:
        filled = owner.program.tables.metadata_location(_fill_peer(owner, files))
        lent[files] = borrower.program.tables.register(f"lent_{files}", filled)
    return lent


# --- Bytes of metadata ---------------------------------------------------------------------------


def _metadata_bytes(plan: Plan, recorder: Recorder, systems: Systems) -> None:
    """Record the bytes that commits of one file each write beside the data, nothing removed."""
    for name, peer in systems.peers.items():
        load = load_average()
        table = peer.program.fresh_table()
        answer = peer.commits(table, count=plan.metadata_commits, limit_s=plan.peer_growth_limit_s)
        values: dict[str, Value] = {
            **_bytes_of(peer.program.tables.metadata_bytes(table), len(answer["ms"])),
            "proven": peer.program.tables.count(table).proves(len(answer["ms"])),
            "load_average": load,
        }
        recorder.add(Record("e", name, f"bytes of {plan.metadata_commits:,} commits", 0, values))
        first = median(answer["ms"][:_COMMITS])
        for number in plan.commit_numbers:
            if number <= len(answer["ms"]):
                found = median(answer["ms"][max(0, number - _COMMITS) : max(number, _COMMITS)])
                of = {"one_file_ms": found, "ratio": ratio(found, first), "load_average": load}
                recorder.add(Record("e", name, f"commit {number:,}", 0, of))
    if systems.frazil is not None:
        _metadata_bytes_of_frazil(plan, recorder, systems.frazil)


def _metadata_bytes_of_frazil(plan: Plan, recorder: Recorder, frazil: Frazil) -> None:
    load, count = load_average(), plan.metadata_commits
    table = frazil.fresh_table(_KEEPING)
    frazil.prepare(table, [count, 0])
    frazil.run(table, "contend", [[0], []], window_s=_WHOLE_S)
    values = {
        **_bytes_of(frazil.tables.metadata_bytes(table), count),
        "proven": frazil.tables.count(table).proves(count),
        "load_average": load,
    }
    recorder.add(Record("e", frazil.name, f"bytes of {count:,} commits", 0, values))


def _bytes_of(by_kind: Mapping[str, int], commits: int) -> dict[str, Value]:
    total = sum(by_kind.values())
    return {
        "commits": commits,
        "metadata_bytes": total,
        "metadata_bytes_per_commit": total / max(1, commits),
        **{f"{kind}_bytes": size for kind, size in by_kind.items()},
    }


# --- History -------------------------------------------------------------------------------------


def _history(plan: Plan, recorder: Recorder, frazil: Frazil) -> None:
    """Commit with one writer on and on; at some numbers, compare the table with a fresh one."""
    table, done = frazil.fresh_table(_EXPIRING), 0
    end_s = time.monotonic() + plan.growth_limit_s
    for number in plan.commit_numbers:
        while done < number - _COMMITS and time.monotonic() < end_s:
            done += _advance(frazil, table, done, min(_CHUNK, number - _COMMITS - done))
        load, grown, fresh = load_average(), [], []
        other = frazil.fresh_table(_EXPIRING)
        for turn in range(_TURNS):
            fresh += _commits(frazil, other, turn * _COMMITS)
            grown += _commits(frazil, table, done)
            done += _COMMITS
        counted = frazil.tables.count(table)
        values: dict[str, Value] = {
            "one_file_ms": median(grown),
            "fresh_table_ms": median(fresh),
            "ratio": ratio(median(grown), median(fresh)),
            "metadata_json_bytes": frazil.tables.metadata_size_bytes(table),
            "snapshots": counted.snapshots,
            "manifests": counted.manifests,
            "commits": done,
            "load_average": load,
        }
        if done < number:
            values["stopped"] = f"at commit {done:,}, at the time limit"
        recorder.add(Record("e", frazil.name, f"commit {number:,}", 0, values))
    proven = frazil.tables.count(table).proves(done)
    recorder.add(Record("e", frazil.name, "all commits", 0, {"commits": done, "proven": proven}))


def _advance(frazil: Frazil, table: str, done: int, count: int) -> int:
    frazil.prepare(table, [count, 0], start=done)
    outcome = frazil.run(table, "contend", [[1], []], window_s=_WHOLE_S, epoch=done)
    return len(outcome.requests)
