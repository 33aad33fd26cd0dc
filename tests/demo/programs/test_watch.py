"""The watcher ends a run that cannot go on, and does not end one too early."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from committer.demo.programs.processes import ChildProcess, DemoError, start
from committer.demo.programs.progress import Progress
from committer.demo.programs.watch import Watch

STAYS = "import time; time.sleep(60)"


async def child(folder: Path, name: str, program: str) -> ChildProcess:
    command = (sys.executable, "-c", program)
    return await start(name, command, log=folder / f"{name}.log", environment=os.environ)


def tell(path: Path, **fields: object) -> None:
    with path.open("a") as file:
        print(json.dumps(fields), file=file)


@pytest.fixture
async def committer(tmp_path: Path) -> AsyncIterator[ChildProcess]:
    started = await child(tmp_path, "committer", STAYS)
    yield started
    await started.stop(0.1)


async def until_ended(watch: Watch) -> Progress:
    async for progress in watch.looks(quiet_s_max=30):
        if watch.applications_ended:
            return progress
    raise AssertionError


async def test_the_last_words_of_an_application_are_heard_before_it_counts_as_ended(
    committer: ChildProcess, tmp_path: Path
) -> None:
    events = tmp_path / "spark-1.jsonl"
    words = {"event": "RowsWritten", "stream": "s", "batch": 0, "rows": 5}
    program = f"open({str(events)!r}, 'w').write({json.dumps(words) + chr(10)!r})"
    watch = Watch(committer, 5)
    watch.add_application(await child(tmp_path, "spark-1", program))
    progress = await until_ended(watch)
    assert progress.rows_published == 5
    assert not progress.is_settled


async def test_an_application_that_fails_ends_the_run(
    committer: ChildProcess, tmp_path: Path
) -> None:
    watch = Watch(committer, 5)
    failing = await child(tmp_path, "spark-1", "raise SystemExit('out of memory')")
    watch.add_application(failing)
    with pytest.raises(DemoError, match=r"spark-1 ended with exit code 1(.|\n)*out of memory"):
        await until_ended(watch)


async def test_a_committer_that_ends_ends_the_run_even_in_order(tmp_path: Path) -> None:
    watch = Watch(await child(tmp_path, "committer", "print('bye')"), 5)
    with pytest.raises(DemoError, match=r"the committer has ended(.|\n)*bye"):
        await until_ended(watch)


async def test_a_request_in_quarantine_ends_the_run(committer: ChildProcess) -> None:
    watch = Watch(committer, 5)
    tell(committer.log, event="request.quarantined", reason="hash_mismatch", message="other bytes")
    with pytest.raises(DemoError, match="went to quarantine: hash_mismatch: other bytes"):
        await until_ended(watch)


async def test_a_run_in_which_nothing_happens_ends(committer: ChildProcess) -> None:
    with pytest.raises(DemoError, match=r"nothing has happened for \d+ s"):
        async for _ in Watch(committer, 5).looks(quiet_s_max=0.0):
            pass
