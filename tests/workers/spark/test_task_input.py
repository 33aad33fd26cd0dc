"""Rows that stop before their end, over a real socket, as Spark's worker reads them."""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pyarrow as pa
import pytest

from committer.errors import PublishError
from committer.iceberg.values.types import LongType
from tests.support.workers.tables import required, schema
from tests.support.workers.write_target import Target, files_below, names
from workers.arrow.arrow_schema import arrow_schema
from workers.spark.task_input import TaskInput, ending_in_order
from workers.spark.written_files import write_files

TABLE = schema(required(1, "id", LongType()))
END_OF_STREAM = struct.pack(">i", -4)
ROWS = 1_000


class Jvm:
    """The other side of a worker's connection: a few batches, and what comes behind them."""

    def __init__(self) -> None:
        self.socket, worker = socket.socketpair()
        self.worker: IO[bytes] = worker.makefile("rb")
        worker.close()

    def send(self, *, batches: int, has_end: bool) -> None:
        sink = self.socket.makefile("wb")
        writer = pa.ipc.new_stream(sink, arrow_schema(TABLE))
        for number in range(batches):
            ids = pa.array(range(number * ROWS, (number + 1) * ROWS), pa.int64())
            writer.write_batch(pa.record_batch([ids], schema=arrow_schema(TABLE)))
        if has_end:
            writer.close()
            sink.write(END_OF_STREAM)
        sink.flush()
        self._kept = writer, sink  # closing them would write the end

    def shut_down(self) -> None:
        self.socket.shutdown(socket.SHUT_WR)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield batches as `ArrowStreamSerializer.load_stream` does."""
        yield from pa.ipc.open_stream(self.worker)

    @property
    def input(self) -> TaskInput:
        return TaskInput(self.worker)  # type: ignore[arg-type]  # it is a BufferedReader


@pytest.fixture
def jvm() -> Iterator[Jvm]:
    one = Jvm()
    yield one
    one.worker.close()
    one.socket.close()


def write(jvm: Jvm, folder: Path, *, last: Callable[[], None] = lambda: None) -> int:
    """Write what comes; `last` is called behind the last batch. The number of files."""

    def batches() -> Iterator[pa.RecordBatch]:
        yield from jvm.batches()
        last()

    target = Target(f"file:{folder}/t", TABLE)
    return len(write_files(batches(), target, names(), jvm.input))


def test_rows_that_came_to_their_end_are_a_file(jvm: Jvm, tmp_path: Path) -> None:
    jvm.send(batches=3, has_end=True)
    assert write(jvm, tmp_path) == 1
    assert len(files_below(tmp_path)) == 1


def test_an_end_that_is_not_sent_yet_is_waited_for_by_nobody(jvm: Jvm, tmp_path: Path) -> None:
    """Do not wait: a JVM that waits for the task's answer would never send it."""
    jvm.send(batches=3, has_end=True)

    def not_sent_yet() -> None:
        jvm.worker.read(len(END_OF_STREAM))

    assert write(jvm, tmp_path, last=not_sent_yet) == 1


@pytest.mark.parametrize("batches", [0, 1, 3])
def test_rows_that_stop_before_their_end_leave_no_file(
    jvm: Jvm, tmp_path: Path, batches: int
) -> None:
    jvm.send(batches=batches, has_end=False)
    jvm.shut_down()
    said = "before the last row" if batches else "schema message"
    with pytest.raises((PublishError, pa.ArrowInvalid), match=said):
        write(jvm, tmp_path)
    assert files_below(tmp_path) == []


def test_no_rows_and_no_end_are_not_an_empty_partition(jvm: Jvm, tmp_path: Path) -> None:
    jvm.shut_down()
    with pytest.raises(PublishError, match="before the last row"):
        write_files(iter(()), Target(f"file:{tmp_path}/t", TABLE), names(), jvm.input)


def test_a_task_that_spark_gives_up_while_its_files_are_closed_leaves_none(
    jvm: Jvm, tmp_path: Path
) -> None:
    jvm.send(batches=3, has_end=True)

    def given_up() -> None:
        # Buffered, so the end of the rows is known although the connection is gone.
        assert jvm.worker.peek(1)  # type: ignore[attr-defined]  # it is a BufferedReader
        jvm.socket.shutdown(socket.SHUT_RDWR)

    with pytest.raises(PublishError, match="given the task up"):
        write(jvm, tmp_path, last=given_up)
    assert files_below(tmp_path) == []


def test_a_stream_without_a_descriptor_cannot_be_looked_at(jvm: Jvm, tmp_path: Path) -> None:
    """`spark.python.use.daemon=false`: the worker reads and writes one stream."""
    jvm.send(batches=1, has_end=True)
    stream = jvm.socket.makefile("rwb")
    rows = TaskInput(stream)
    target = Target(f"file:{tmp_path}/t", TABLE)
    assert len(write_files(jvm.batches(), target, names(), rows)) == 1


def test_where_there_is_no_connection_to_look_at_every_end_is_one(tmp_path: Path) -> None:
    batch = pa.record_batch([pa.array([1, 2], pa.int64())], schema=arrow_schema(TABLE))
    none = TaskInput.of_running_task()  # no worker of Spark has called us
    files = write_files(iter([batch]), Target(f"file:{tmp_path}/t", TABLE), names(), none)
    assert len(files) == 1


def called_by_a_worker(infile: IO[bytes]) -> TaskInput:
    """Ask for the task's input from below the function that Spark's worker runs."""
    program = "def main(infile):\n    return find()\nfound = main(infile)"
    names = {"infile": infile, "find": TaskInput.of_running_task}
    exec(compile(program, "pyspark/worker.py", "exec"), names)
    found = names["found"]
    assert isinstance(found, TaskInput)
    return found


@pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="only Linux holds it back so")
def test_spark_gets_its_acknowledgment_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        spark = socket.create_connection(server.getsockname())
        worker, _ = server.accept()
    with spark, worker, worker.makefile("rb") as stream:
        quick = socket.IPPROTO_TCP, socket.TCP_QUICKACK
        worker.setsockopt(*quick, 0)
        called_by_a_worker(stream).require_listener()
        assert worker.getsockopt(*quick) == 1


def test_a_connection_by_a_file_has_no_acknowledgments(jvm: Jvm) -> None:
    """`spark.python.unix.domain.socket.enabled=true`."""
    called_by_a_worker(jvm.worker).require_listener()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_worker_that_is_told_to_end_deletes_first(tmp_path: Path, number: signal.Signals) -> None:
    target = Target(f"file:{tmp_path}/t", TABLE, properties={"write.target-file-size-bytes": "1"})
    batch = pa.record_batch([pa.array(range(9), pa.int64())], schema=arrow_schema(TABLE))
    seen: list[int] = []
    before = signal.getsignal(number)

    def batches() -> Iterator[pa.RecordBatch]:
        yield batch
        seen.append(len(files_below(tmp_path)))
        os.kill(os.getpid(), number)
        yield batch

    with pytest.raises(SystemExit) as ended, ending_in_order():
        write_files(batches(), target, names(), TaskInput(None))
    assert ended.value.code == 128 + number
    assert seen == [1], "nothing was written before the signal"
    assert files_below(tmp_path) == []
    assert signal.getsignal(number) == before


def test_outside_the_main_thread_signals_are_left_alone() -> None:
    program = (
        "import threading\n"
        "from workers.spark.task_input import ending_in_order\n"
        "def run():\n"
        "    with ending_in_order():\n"
        "        print('inside')\n"
        "thread = threading.Thread(target=run)\n"
        "thread.start()\n"
        "thread.join()\n"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (answer.stdout, answer.returncode) == ("inside\n", 0)
