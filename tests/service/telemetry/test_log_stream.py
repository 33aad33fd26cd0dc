"""A log whose reader is stopped: its writers go on, and learn later what was dropped."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from committer.service.telemetry.log_stream import LogStream

LINE = "x" * 99 + "\n"
WAIT_S = 60.0


@contextmanager
def stopped_pipe() -> Iterator[tuple[TextIO, int]]:
    """Yield a pipe that is full, and the end that it is read from."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    try:
        while True:
            os.write(write, b"." * 4096)
    except BlockingIOError:
        os.set_blocking(write, True)
    with os.fdopen(write, "w") as inner:
        yield inner, read
    os.close(read)


def read_until(descriptor: int, ending: str) -> str:
    content = b""
    while not content.endswith(ending.encode()):
        content += os.read(descriptor, 65_536)
    return content.decode().lstrip(".")


def test_a_full_pipe_holds_no_writer_and_what_does_not_fit_is_counted_and_reported() -> None:
    with stopped_pipe() as (inner, read):
        stream = LogStream(inner, queued_bytes_max=10 * len(LINE))
        reported = threading.Event()

        def report(lines: int) -> None:
            stream.write(f"{lines} dropped\n")
            reported.set()

        stream.report = report
        for _ in range(30):
            assert stream.write(LINE) == len(LINE)
        assert stream.dropped_lines == 20
        assert not stream.drain(0.0)
        assert not reported.is_set()
        said = read_until(read, "dropped\n")
        assert reported.wait(WAIT_S)
        assert said == LINE * 10 + "20 dropped\n"
        assert stream.drain(WAIT_S)
        stream.write("later\n")
        assert read_until(read, "\n") == "later\n"


def test_a_reader_that_has_gone_is_no_error_and_its_lines_are_counted() -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as inner:
        stream = LogStream(inner)
        stream.write(LINE + LINE)
        assert stream.drain(WAIT_S)
    assert stream.dropped_lines == 2


def test_a_pipe_that_another_process_has_made_non_blocking_loses_nothing() -> None:
    read, write = os.pipe()
    os.set_blocking(write, False)
    with os.fdopen(write, "w") as inner:
        stream = LogStream(inner)
        for _ in range(3_000):
            stream.write(LINE)
        stream.write("end\n")
        assert read_until(read, "end\n") == LINE * 3_000 + "end\n"
    os.close(read)
    assert stream.dropped_lines == 0
