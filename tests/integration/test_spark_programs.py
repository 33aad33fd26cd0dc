"""Random programs of concurrent Spark applications on one table, with kills of everything.

Whatever was killed, the rows are those of a model, by three readers, and what is left behind is of
tries that were disturbed. `FRAZIL_TEST_PROGRAM=<seed>` runs another seed: its programs are the same
each time, the moments of the kills are not.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

import pytest

import frazil
from committer.iceberg.values.types import DateType, IntegerType, LongType, StringType
from tests.integration.program_application import TABLE, Place, different_rows, expected_rows
from tests.integration.program_journal import Attempt
from tests.integration.program_model import Kind, Layout, Program, Row
from tests.support.integration.java_engine import java_engine
from tests.support.integration.processes import kill_session, session_members
from tests.support.integration.real_harness import CATALOG, RealHarness, real_harness, until
from tests.support.integration.sink_writes import create_table, rows_by_duckdb
from tests.support.integration.spark_program import spark_program
from tests.support.workers.tables import optional, required, schema
from tests.support.workers.write_target import spec_of

pytestmark = [
    pytest.mark.server,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(1_500),
]

SCHEMA = schema(
    required(1, "id", LongType()),
    required(2, "owner", IntegerType()),
    required(3, "day", DateType()),
    optional(4, "text", StringType()),
    optional(5, "amount", LongType()),
)
MODULE = "tests.integration.program_application"
APPLICATIONS, LENGTH, KILLS = 4, 12, 10
SEEDS = [1, 2, 3, 4]
# Two short programs that have every kind of step between them, on a table of version 3.
SHORT_SEED, SHORT_LENGTH = 78_066, 6
# A task of a driver that was killed may end a little later than the driver's own process.
_AFTERMATH_MS = 5_000
_LONGEST_S = 1_300
OF_COMMITTERS = ("metadata file", "manifest list", "manifest")
_ROW = "id, owner, cast(day as string), text, amount"


def given_seeds() -> list[int]:
    text = os.environ.get("FRAZIL_TEST_PROGRAM")
    return [int(text)] if text else SEEDS


@dataclass(slots=True)
class Run:
    """The applications of a seed, and what chance does to them."""

    harness: RealHarness
    places: list[Place]
    chance: random.Random
    processes: dict[int, subprocess.Popen[str]] = field(default_factory=dict)
    killed: set[int] = field(default_factory=set)
    kills: Counter[str] = field(default_factory=Counter)

    async def all_programs(self, kills: int) -> None:
        async with asyncio.TaskGroup() as tasks:
            for place in self.places:
                tasks.create_task(self._program(place))
            chaos = tasks.create_task(self._kill_things(kills))
            await until(
                self._all_are_done, "the end of all programs", timeout_s=_LONGEST_S, poll_s=0.2
            )
            chaos.cancel()
        await until(self.harness.is_settled, "an empty inbox")

    async def _program(self, place: Place) -> None:
        """Run an application, and start it again when its driver was killed."""
        log_file = place.folder / "spark.log"
        while True:
            with spark_program(
                self.harness, MODULE, *place.arguments, log_file=log_file
            ) as process:
                self.processes[place.application] = process
                await until(
                    lambda p=process: p.poll() is not None,
                    "its end",
                    timeout_s=_LONGEST_S,
                    poll_s=0.1,
                )
            if place.application not in self.killed:
                break
            self.killed.discard(place.application)
            await self._forget(place)
        told = place.journal.entries()[-1:]
        assert process.returncode == 0, f"application {place.application}: {told}"

    async def _forget(self, place: Place) -> None:
        """Wait until a delete of whole files, which a killed driver may have published, is over:
        it deletes what matches when it lands, so a user may not go on before."""
        if place.journal.attempts()[-1].message != "delete":
            return
        before = set(await self.harness.outstanding())

        async def is_over() -> bool:
            return before.isdisjoint(await self.harness.outstanding())

        await until(is_over, "the end of requests of a killed driver")

    def _all_are_done(self) -> bool:
        return all(place.journal.done() == place.length for place in self.places)

    async def _kill_things(self, kills: int) -> None:
        """Kill something that chance chooses, again and again over the whole of the programs."""
        steps = sum(place.length for place in self.places)
        for number in range(kills):
            [what] = self.chance.choices(["committer", "driver", "worker"], [3, 3, 4])
            place = self.chance.choice(self.places)
            await until(
                lambda due=steps * number // kills: self._is_due(due),
                "more steps that are done",
                timeout_s=_LONGEST_S,
                poll_s=0.1,
            )
            await until(
                lambda p=place: p.journal.is_at_work() or p.journal.done() == p.length,
                "a step under way",
                timeout_s=_LONGEST_S,
                poll_s=0.01,
            )
            await asyncio.sleep(self.chance.uniform(0, 4))
            self.kills[what] += await getattr(self, f"_kill_{what}")(place)

    def _is_due(self, steps: int) -> bool:
        return sum(place.journal.done() for place in self.places) >= steps

    async def _kill_committer(self, _: Place) -> bool:
        self.harness.signal(signal.SIGKILL)
        await self.harness.start()
        return True

    async def _kill_driver(self, place: Place) -> bool:
        process = self.processes[place.application]
        if process.poll() is not None or place.journal.done() == place.length:
            return False
        self.killed.add(place.application)
        kill_session(process)
        return True

    async def _kill_worker(self, place: Place) -> bool:
        """Kill a Python worker, or the one that forks them, if there is any."""
        workers = list(python_workers(self.processes[place.application].pid))
        if not workers:
            return False
        place.journal.append(place.journal.done(), "worker killed")
        with suppress(ProcessLookupError):
            os.kill(self.chance.choice(workers), signal.SIGKILL)
        return True


def python_workers(session: int) -> Iterator[int]:
    for member in session_members(session):
        # It may have ended by itself meanwhile.
        with suppress(OSError):
            if b"pyspark.daemon" in Path(f"/proc/{member}/cmdline").read_bytes():
                yield member


@contextmanager
def run_of(seed: int, folder: Path, *, applications: int, length: int) -> Iterator[Run]:
    """Start a committer and make the table of a seed."""
    layout = Layout.of(seed, applications)
    source = 1 if layout.partitioned_by == "bucket" else 3
    spec = replace(spec_of((source, "place", layout.transform)), spec_id=0)
    print(f"seed {seed}: {layout}")
    with real_harness(FRAZIL_COMMIT__MIN_INTERVAL_MS="50") as harness:
        asyncio.run(
            create_table(
                harness,
                TABLE,
                SCHEMA,
                spec=spec,
                format_version=layout.version,
                properties=layout.modes,
            )
        )
        asyncio.run(harness.start())
        places = []
        for application in range(applications):
            of_it = folder / f"application-{application}"
            of_it.mkdir()
            places.append(Place(of_it, seed, application, applications, length))
        try:
            yield Run(harness, places, random.Random(f"{seed}/kills"))
        except BaseException:
            show_journals(places)
            test = os.environ["PYTEST_CURRENT_TEST"].partition(" ")[0]
            print(f"replay: FRAZIL_TEST_PROGRAM={seed} .venv/bin/pytest -v -s '{test}'")
            raise


def test_the_short_programs_change_rows_and_leave_others_by_every_kind_of_step() -> None:
    layout = Layout.of(SHORT_SEED, 2)
    programs = [Program(SHORT_SEED, each, layout, SHORT_LENGTH) for each in range(2)]
    seen = {what for program in programs for what in what_happens(program)}
    wanted = {(kind, done) for kind in ("upsert", "merge") for done in ("deletes", "changes")}
    wanted |= {("delete", "deletes"), ("update", "changes"), ("overwrite", "deletes")}
    wanted |= {(kind, "keeps") for kind in ("delete", "update", "overwrite", "compact")}
    assert wanted <= seen
    assert {kind for kind, _ in seen} == {*get_args(Kind)}


def what_happens(program: Program) -> Iterator[tuple[Kind, str]]:
    """Yield what becomes of rows, by the kind of the step."""
    before: dict[int, Row] = {}
    for step in program.steps():
        after = {row[0]: row for row in step.rows_after}
        yield step.kind, "runs"
        for key, row in before.items():
            is_kept = after.get(key) == row
            yield step.kind, "keeps" if is_kept else "changes" if key in after else "deletes"
        before = after


@pytest.mark.heavy
def test_two_applications_leave_the_rows_of_a_model(tmp_path: Path) -> None:
    with run_of(SHORT_SEED, tmp_path, applications=2, length=SHORT_LENGTH) as run:
        asyncio.run(run.all_programs(kills=2))
        check(run)


@pytest.mark.heavy
@pytest.mark.parametrize("seed", given_seeds())
def test_four_applications_leave_the_rows_of_a_model_whatever_is_killed(
    seed: int, tmp_path: Path
) -> None:
    with run_of(seed, tmp_path, applications=APPLICATIONS, length=LENGTH) as run:
        asyncio.run(run.all_programs(KILLS))
        check(run)


def check(run: Run) -> None:
    """Compare the table with the model, and look at what is left behind."""
    harness, journals = run.harness, [place.journal for place in run.places]
    expected = expected_rows([place.program for place in run.places])
    check_rows("Frazil", expected, rows_by_frazil(harness))
    check_rows("DuckDB", expected, sorted(rows_by_duckdb(harness, TABLE, _ROW)))
    with java_engine(harness) as java:
        found = [tuple(row) for row in java.sql(f"SELECT {_ROW} FROM {CATALOG}.{TABLE}")]
    check_rows("Iceberg Java", expected, sorted(found))
    check_files(harness)
    # Of a change that conflicts its caller is told, and runs it again: nothing is kept but that.
    kept = [one for one in asyncio.run(harness.quarantined()) if not one.is_told_only]
    assert kept == []
    disturbed = check_failures(run)
    left = check_orphans(run, disturbed)
    steps = Counter(one.message.partition(":")[0] for each in journals for one in each.attempts())
    print(
        f"{len(expected)} rows by three readers; kills {dict(run.kills)}; tries {dict(steps)},"
        f" {len(disturbed)} of them disturbed; orphans {dict(left)}"
    )


def check_rows(reader: str, expected: list[Row], found: list[Row]) -> None:
    assert found == expected, f"{reader}: {different_rows(expected, found)}"


def rows_by_frazil(harness: RealHarness) -> list[Row]:
    table = frazil.load_table(TABLE, catalog_uri=f"sqlite:///{harness.catalog_file}")
    rows = table.scan().to_arrow().to_pylist()
    return sorted((r["id"], r["owner"], str(r["day"]), r["text"], r["amount"]) for r in rows)


def check_files(harness: RealHarness) -> None:
    """Check that no file, or part of one, is in the table twice."""
    table = frazil.load_table(TABLE, catalog_uri=f"sqlite:///{harness.catalog_file}")
    listed = Counter(
        (row["file_path"], row["content_offset"]) for row in table.inspect.files().to_pylist()
    )
    assert [file for file, times in listed.items() if times > 1] == []


def check_failures(run: Run) -> list[Attempt]:
    """Check that tries fail by kills of their workers only. Returns those that were disturbed."""
    disturbed = []
    for place in run.places:
        kills = place.journal.worker_kills()
        for one in place.journal.attempts():
            is_hit = any(one.begin_ms <= at <= one.end_ms for at in kills)
            assert is_hit or one.ended != "failed", f"application {place.application}: {one}"
            # A change that meets another's is run again, and a group of files may lose a race.
            if is_hit or one.ended is None:
                disturbed.append(one)
    return disturbed


def check_orphans(run: Run, disturbed: list[Attempt]) -> Counter[str]:
    """Check that files which nothing names are of disturbed tries, or of a committer that was
    killed. Returns how many there are, by kind."""
    found = orphans(run.harness)
    unexplained = [
        orphan
        for orphan in found
        if not (
            run.kills["committer"]
            if orphan["kind"] in OF_COMMITTERS
            else is_of_one(orphan["modified-ms"], disturbed)
        )
    ]
    assert unexplained == []
    return Counter(orphan["kind"] for orphan in found)


def is_of_one(modified_ms: int, attempts: list[Attempt]) -> bool:
    return any(one.begin_ms <= modified_ms <= one.end_ms + _AFTERMATH_MS for one in attempts)


def orphans(harness: RealHarness) -> list[dict[str, Any]]:
    """Return what `frazil table orphans` finds, however young."""
    words = ("table", "orphans", TABLE, "--older-than", "0s", "--json")
    answer = subprocess.run(
        [sys.executable, "-m", "committer", *words],
        env=harness.environment(),
        cwd=harness.folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in answer.stdout.splitlines() if line.startswith("{")]


def show_journals(places: list[Place]) -> None:
    for place in places:
        print(f"application {place.application}")
        for entry in place.journal.entries():
            print("  ", entry.step, entry.event, entry.ms, entry.message[-1500:])
