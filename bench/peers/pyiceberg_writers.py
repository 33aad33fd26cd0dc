"""Commits of PyIceberg: writers are processes, forked from one that has imported everything.

Tables exist already. Times are seconds of the monotonic clock.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import queue
import resource
import time
import warnings
from collections.abc import Iterator
from multiprocessing.process import BaseProcess
from multiprocessing.queues import Queue
from typing import Any
from uuid import UUID

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io import InputFile, InputStream, OutputFile, OutputStream
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import Table
from pyiceberg.typedef import Record

from bench.child import Message, answer_lines
from bench.workload import descriptor

_DELAY = "BENCH_DELAY_MS"
_ATTEMPT = UUID("0d6f8e1c-5b0f-4c0e-9a53-6f1d2b3c4d5e")
_FORK = multiprocessing.get_context("fork")


def _nap() -> None:
    time.sleep(int(os.environ.get(_DELAY, "0")) / 1_000)


class DelayedFile(PyArrowFile):  # type: ignore[misc]  # the library is not typed for us
    """A file whose opening and creating take longer."""

    def open(self, seekable: bool = True) -> InputStream:
        _nap()
        return super().open(seekable)

    def create(self, overwrite: bool = False) -> OutputStream:
        _nap()
        return super().create(overwrite)


class DelayedFileIO(PyArrowFileIO):  # type: ignore[misc]  # as above
    """The library's own files with a sleep for each read, write and deletion."""

    def new_input(self, location: str) -> InputFile:
        return self._delayed(super().new_input(location))

    def new_output(self, location: str) -> OutputFile:
        return self._delayed(super().new_output(location))

    def delete(self, location: Any) -> None:
        _nap()
        super().delete(location)

    def _delayed(self, file: PyArrowFile) -> DelayedFile:
        file.__class__ = DelayedFile
        assert isinstance(file, DelayedFile)
        return file


def open_catalog(catalog: str, catalog_file: str) -> SqlCatalog:
    delayed = f"{__name__}.{DelayedFileIO.__name__}"
    more = {"py-io-impl": delayed} if os.environ.get(_DELAY, "0") != "0" else {}
    return SqlCatalog(catalog, uri=f"sqlite:///{catalog_file}", init_catalog_tables="false", **more)


def data_files(table: Table, start: int, count: int, files_a_day: int) -> Iterator[DataFile]:
    for number in range(start, start + count):
        found = descriptor(table.location(), number, files_a_day)
        file = DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=found.path(_ATTEMPT),
            file_format=FileFormat.PARQUET,
            partition=Record(found.region, found.day),
            record_count=found.record_count,
            file_size_in_bytes=found.size_bytes,
            column_sizes=found.column_sizes,
            value_counts=found.value_counts,
            null_value_counts=found.null_value_counts,
            nan_value_counts=found.nan_value_counts,
            lower_bounds=found.lower_bounds,
            upper_bounds=found.upper_bounds,
            key_metadata=None,
            split_offsets=[4],
            equality_ids=None,
            sort_order_id=None,
        )
        file.spec_id = 0
        yield file


def commit(table: Table, files: list[DataFile]) -> None:
    """Commit by a fast append, the library's default."""
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
        for file in files:
            append.append_data_file(file)


def write(
    number: int, prepared: int, window_s: float, where: dict[str, str], ready: Any, results: Any
) -> None:
    """Commit as one writer, back to back until the window ends."""
    catalog = open_catalog(where["catalog"], where["catalog_file"])
    table = catalog.load_table(where["table"])
    files = list(data_files(table, number * prepared, prepared, 100))
    landed: list[tuple[float, float]] = []
    failed: dict[str, int] = {}
    ready.wait()
    before_s = _cpu_s()
    end_s = time.monotonic() + window_s
    for file in files:
        called_s = time.monotonic()
        if called_s > end_s:
            break
        try:
            commit(table, [file])
            landed.append((called_s, time.monotonic()))
        except Exception as error:  # noqa: BLE001  # counted by its class
            name = type(error).__name__
            failed[name] = failed.get(name, 0) + 1
            table = catalog.load_table(where["table"])
    results.put((landed, failed, _cpu_s() - before_s))


async def contend(
    *,
    writers: int,
    prepared: int,
    window_s: float,
    grace_s: float,
    delay_ms: int,
    **where: str,
) -> Message:
    """Run writers in processes, which are ended if they are not done some time after the window.

    One table is loaded first, so that what the library imports late is there for all of them.
    """
    os.environ[_DELAY] = str(delay_ms)
    open_catalog(where["catalog"], where["catalog_file"]).load_table(where["table"])
    ready = _FORK.Barrier(writers + 1)
    results: Queue[Any] = _FORK.Queue()
    arguments = (prepared, window_s, where, ready, results)
    processes: list[BaseProcess] = [
        _FORK.Process(target=write, args=(number, *arguments), daemon=True)
        for number in range(writers)
    ]
    for process in processes:
        process.start()
    ready.wait()
    started_s = time.monotonic()
    answers = list(_answers(results, writers, started_s + window_s + grace_s))
    for process in processes:
        process.kill()
        process.join()
    failed: dict[str, int] = {}
    for _, errors, _ in answers:
        for name, count in errors.items():
            failed[name] = failed.get(name, 0) + count
    return {
        "started_s": started_s,
        "ended_s": time.monotonic(),
        "requests": [request for landed, _, _ in answers for request in landed],
        "failed": failed,
        "cpu_s": sum(cpu_s for _, _, cpu_s in answers),
        "unfinished": writers - len(answers),
    }


def _answers(results: Queue[Any], count: int, end_s: float) -> Iterator[Any]:
    for _ in range(count):
        try:
            yield results.get(timeout=max(0.01, end_s - time.monotonic()))
        except queue.Empty:
            return


async def commits(
    *,
    count: int,
    files: int,
    start: int,
    files_a_day: int,
    limit_s: float,
    delay_ms: int,
    catalog: str,
    catalog_file: str,
    table: str,
) -> Message:
    """Commit so many files each as one writer, one commit after another until the limit."""
    os.environ[_DELAY] = str(delay_ms)
    loaded = open_catalog(catalog, catalog_file).load_table(table)
    milliseconds, metadata_bytes = [], []
    end_s = time.monotonic() + limit_s
    for number in range(count):
        if time.monotonic() > end_s:
            break
        made = list(data_files(loaded, start + number * files, files, files_a_day))
        called_s = time.monotonic()
        commit(loaded, made)
        milliseconds.append((time.monotonic() - called_s) * 1_000)
        path = loaded.metadata_location.removeprefix("file://")
        metadata_bytes.append(os.stat(path).st_size)  # noqa: PTH116  # a path of any spelling
    return {"ms": milliseconds, "metadata_bytes": metadata_bytes}


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    asyncio.run(answer_lines({"contend": contend, "commits": commits}))
