"""Runs the tests in parts, each in the way that suits it, and adds up what they report.

`run_tests.py` runs all parts of `make test`, `run_tests.py quick` one of them. The last lines are
the tests that failed, and the sum. A part of `ASKED_FOR` runs only by its name.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.served_files import served_files

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ROOT / ".venv/bin/python"
PYTHON_SPARK40 = ROOT / ".venv-spark40/bin/python"
PYTHON_SPARK43 = ROOT / ".venv-spark43/bin/python"
PARALLEL = ("-q", "-n", "3", "--dist", "worksteal")
# Targets of make that later parts need: make builds them while the first part runs.
TARGETS = ("install-spark43", "jars", "azurite", "promtool", "class-archive")
# One line for each test, as it ends: these take their time. A group's tests share its servers.
# Groups keep their order, the longest first: by itself it would begin those of one long test last.
# Such a test mostly waits for a server, a JVM or a lease, so there are more workers than cores.
BY_GROUP = ("-v", "-n", "4", "--dist", "loadfile", "--no-loadscope-reorder")
SERIAL = ("-v",)
PLAIN = ("--no-header", "--color=no", "--durations=5", "--durations-min=5")
# pytest's closing line: "3 failed, 12 passed, 1 skipped in 4.20s".
COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped)\b")
# A line of the short summary by pytest: "FAILED path::name - AssertionError: …".
FAILURE = re.compile(r"(FAILED|ERROR) \S+\.py\b")
CLOSING = re.compile(r"^=*\s*(\d+ \w+(, )?)+ in [\d.]+s")


@dataclass(frozen=True, slots=True)
class Part:
    """Some of the tests, and the interpreter and options that they are run with."""

    name: str
    python: Path
    arguments: tuple[str, ...]


SERVERS = "server or spark or slow or heavy or trino"
# Spark has two releases in `make test`: the second one runs one test of each way to write.
WAYS_TO_WRITE = " or ".join(
    (
        "each_micro_batch_is_one",
        "streaming_upsert",
        "named_producer_of_foreach",
        "batch_write_is_one",
        "takes_inserts",
        "write_creates",
    )
)
PARTS = (
    Part("local", PYTHON, (*PARALLEL, "-m", f"simulation and not heavy or not ({SERVERS})")),
    Part(
        "real",
        PYTHON,
        (
            *BY_GROUP,
            *("-m", "(server or spark or slow) and not (simulation or heavy or trino)"),
            *served_files(ROOT),
        ),
    ),
    Part(
        "spark43",
        PYTHON_SPARK43,
        (*SERIAL, "tests/integration/test_spark_writer.py", "-k", WAYS_TO_WRITE),
    ),
)
ASKED_FOR = (
    Part("quick", PYTHON, (*PARALLEL, "-m", f"not ({SERVERS} or simulation or thorough)")),
    Part(
        "spark43-all",
        PYTHON_SPARK43,
        (
            *BY_GROUP,
            "tests/integration/test_spark_writer.py",
            "tests/integration/test_spark_reads.py",
            "tests/workers/source",
        ),
    ),
    Part("heavy", PYTHON, (*BY_GROUP, "-m", "heavy and not trino")),
    Part("spark40", PYTHON_SPARK40, (*SERIAL, "tests/integration/test_spark_writer.py")),
    Part("trino", PYTHON, (*SERIAL, "-m", "trino")),
)


@dataclass(slots=True)
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: list[str] = field(default_factory=list)


def main(names: list[str]) -> int:
    total = Counts()
    if names:
        parts = [part for part in (*PARTS, *ASKED_FOR) if part.name in names]
        codes = [run_part(part, total) for part in parts]
    else:
        codes = run_all(total)
    for failure in total.failures:
        print(failure)
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped", flush=True)
    return 0 if codes and not any(codes) else 1


def run_all(total: Counts) -> list[int]:
    """Run the first part while what the others need is fetched: much of that is waiting."""
    first, *others = PARTS
    with tempfile.TemporaryFile("w+") as log:
        make = ("make", "--jobs=2", "--output-sync", *TARGETS)
        with subprocess.Popen(make, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT) as fetching:
            codes = [run_part(first, total)]
        log.seek(0)
        print(log.read(), end="", flush=True)
    if fetching.returncode:
        total.failed += 1
        print(f"`{' '.join(make)}` ended with code {fetching.returncode}\n", flush=True)
        return [*codes, fetching.returncode]
    return codes + [run_part(part, total) for part in others]


def run_part(part: Part, total: Counts) -> int:
    print(f"--- {part.name} tests", flush=True)
    started = time.monotonic()
    command = [str(part.python), "-m", "pytest", *PLAIN, *part.arguments]
    closing = ""
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    # Tests and all the processes that they start would be compiled again by each of them.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        for line in process.stdout:
            print(line, end="", flush=True)
            if CLOSING.match(line):
                closing = line
            if FAILURE.match(line):
                total.failures.append(f"{part.name}: {line.strip()}")
    add_up(closing, total)
    if process.returncode and not closing:
        total.failed += 1  # it broke before it could count
        print(f"\n{part.name}: pytest ended with code {process.returncode}, and no summary")
    print(f"--- {part.name}: {time.monotonic() - started:.0f} s\n", flush=True)
    return process.returncode


def add_up(closing: str, total: Counts) -> None:
    for count, outcome in COUNT.findall(closing):
        match outcome:
            case "passed":
                total.passed += int(count)
            case "skipped":
                total.skipped += int(count)
            case _:
                total.failed += int(count)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
