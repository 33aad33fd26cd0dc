"""Runs cases in Iceberg Java: one process that reads a case a line and answers each."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.conformance.operations.case import Answer, Case
from tests.support.builders.jars import JAVA_OPTIONS
from tests.support.builders.java_programs import java_program

_MAIN = "org.apache.iceberg.Operations"
# Rewritten manifests have their entries in the order in which threads have read them.
_ONE_THREAD = "-Diceberg.worker.num-threads=1"
_SOURCE = Path(__file__).with_name("Operations.java")


def java_answers(cases: Sequence[Case]) -> Iterator[list[Answer]]:
    """Yield Java's answers to the steps of each case."""
    asked = "".join(json.dumps(case.printed()) + "\n" for case in cases)
    with tempfile.TemporaryDirectory(prefix="operations-") as folder:
        command = java_program(_SOURCE, _MAIN, Path(folder), *JAVA_OPTIONS.split(), _ONE_THREAD)
        found = subprocess.run(command, input=asked, capture_output=True, text=True, check=False)
    if found.returncode:
        raise RuntimeError(f"{_SOURCE.name} ended with code {found.returncode}: {found.stderr}")
    yield from map(json.loads, found.stdout.splitlines())
