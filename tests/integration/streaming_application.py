"""A Spark application with one streaming query into a table, in a process that may be killed.

Run as a program it takes one command a line and answers each with a line of JSON: `start`, with the
value of the option `wait`; `drain`; `stop`, answered once the query is stopping, and `stopped`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import utime
from pathlib import Path
from typing import Any

from tests.support.integration.processes import kill_session
from tests.support.integration.real_harness import RealHarness
from tests.support.integration.spark_confs import CONFS
from tests.support.integration.spark_program import spark_program

_EARLIER_S = 1_700_000_000
_INTERRUPTED_S = 1.0


@dataclass(frozen=True, slots=True)
class Stream:
    """The state that survives every driver: input, one file a micro-batch, and checkpoint.

    `upserts`: how the query deletes the old rows of its upserts; without it, it appends. All
    columns are the key.
    """

    folder: Path
    table: str
    upserts: str = ""

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    @property
    def source(self) -> Path:
        return self.folder / "source"

    def add_input(self, number: int, ids: Sequence[int]) -> None:
        """Add one file. It appears at once, since Spark may look at any time."""
        self.source.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps({"id": each, "carrier": ("AA", "UA")[each % 2]}) for each in ids]
        hidden = self.source / f".{number:04d}.json"
        hidden.write_text("\n".join(lines) + "\n")
        utime(hidden, (_EARLIER_S + number, _EARLIER_S + number))
        hidden.rename(self.source / f"{number:04d}.json")

    def has_offsets(self, epoch: int) -> bool:
        return (self.checkpoint / "offsets" / str(epoch)).exists()

    def has_committed(self, epoch: int) -> bool:
        """Return whether Spark itself has recorded that the micro-batch is done."""
        return (self.checkpoint / "commits" / str(epoch)).exists()

    @property
    def query_id(self) -> str:
        found: str = json.loads((self.checkpoint / "metadata").read_text())["id"]
        return found


class Driver:
    """The running application."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def send(self, *words: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the Spark application has ended")
        answer = json.loads(line)
        if isinstance(answer, str) and answer.startswith("error"):
            raise RuntimeError(answer)
        return answer

    def ask(self, *words: str) -> Any:
        self.send(*words)
        return self.answer()

    def kill(self) -> None:
        """Kill, with SIGKILL, the driver, its JVM and all Python workers."""
        kill_session(self.process)


@contextmanager
def spark_driver(
    harness: RealHarness, stream: Stream, *, master: str = "local[2]"
) -> Iterator[Driver]:
    """Start the application; at the end it is gone, with everything that it started."""
    arguments = stream.table, str(stream.folder), master, stream.upserts or "append"
    log_file = stream.folder / "spark.log"
    with spark_program(harness, __name__, *arguments, log_file=log_file) as process:
        yield Driver(process)


# --- The application -----------------------------------------------------------------------------


def _session(folder: Path, master: str) -> Any:
    from pyspark.sql import SparkSession

    from frazil.spark import configure

    builder = configure(SparkSession.builder.master(master).appName("streaming"))
    confs = {
        **CONFS,
        "spark.driver.memory": "1g",
        "spark.sql.warehouse.dir": str(folder / "spark-warehouse"),
    }
    for key, value in confs.items():
        builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


class _Application:
    def __init__(self, stream: Stream, master: str) -> None:
        self._stream = stream
        self._spark = _session(stream.folder, master)
        self._query: Any = None
        self._stopping: threading.Thread | None = None

    def start(self, wait: str) -> str:
        from frazil.spark import upsert_stream

        reader = self._spark.readStream.schema("id long, carrier string")
        rows = reader.option("maxFilesPerTrigger", 1).json(str(self._stream.source))
        if self._stream.upserts:
            keys, deletes = ["id", "carrier"], self._stream.upserts
            writer = upsert_stream(rows, keys, partitions=2, deletes=deletes)
        else:
            writer = rows.writeStream.format("frazil")
        writer = writer.option("wait", wait).option(
            "checkpointLocation", str(self._stream.checkpoint)
        )
        self._query = writer.start(self._stream.table)
        return str(self._query.id)

    def drain(self) -> str:
        self._query.processAllAvailable()
        return "drained"

    def stop(self) -> str:
        self._stopping = threading.Thread(target=self._query.stop)
        self._stopping.start()
        while self._query.isActive:
            time.sleep(0.01)
        # Spark interrupts the query's thread a moment later; the commit must still be running then.
        time.sleep(_INTERRUPTED_S)
        return "stopping"

    def stopped(self) -> str:
        assert self._stopping is not None
        self._stopping.join()
        return "stopped"


def main(table: str, folder: str, master: str, mode: str) -> None:
    stream = Stream(Path(folder), table, upserts="" if mode == "append" else mode)
    application = _Application(stream, master)
    for line in sys.stdin:
        command, *arguments = line.split()
        try:
            answer = getattr(application, command)(*arguments)
        except Exception as error:  # noqa: BLE001  # the other side raises it
            answer = f"error: {error}"[:4000]
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
