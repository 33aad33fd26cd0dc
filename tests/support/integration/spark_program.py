"""A module of the tests that runs as a Spark application, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.integration.processes import kill_session
from tests.support.integration.real_harness import ROOT, RealHarness
from workers.spark.java import find_java_home


@contextmanager
def spark_program(
    harness: RealHarness, module: str, *arguments: str, log_file: Path
) -> Iterator[subprocess.Popen[str]]:
    """Start the application; at the end it is gone, with everything that it started."""
    environment = harness.environment() | {
        "JAVA_HOME": str(find_java_home(harness.folder / "java"))
    }
    with log_file.open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
    try:
        yield process
    except BaseException:
        print(log_file.read_text()[-3000:])
        raise
    finally:
        kill_session(process)
