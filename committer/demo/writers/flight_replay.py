"""Deals the input out to the streams: many small Parquet files, one of them a micro-batch."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

# Spark's file source takes the oldest file first, so their times carry the order.
_FIRST_FILE_TIME_S = 1_356_998_400


@dataclass(frozen=True, slots=True)
class InputFile:
    """Rows `start` to `stop` of the input: the micro-batch `number` of a stream."""

    stream: int
    number: int
    start: int
    stop: int


def plan_input(rows: int, streams: int, files_per_stream: int) -> list[InputFile]:
    """Cut the input into equal pieces and deal them out in turn, so that all streams go through the

    same months at the same time. Each row is in one file. Few rows make fewer files.
    """
    pieces = min(rows, streams * files_per_stream)
    return [
        InputFile(
            stream=piece % streams,
            number=piece // streams,
            start=rows * piece // pieces,
            stop=rows * (piece + 1) // pieces,
        )
        for piece in range(pieces)
    ]


def write_input(flights: pa.Table, files: list[InputFile], folder: Path) -> None:
    """Write the files of each stream into its own folder."""
    for stream in {file.stream for file in files}:
        stream_folder(folder, stream).mkdir(parents=True)
    for file in files:
        rows = flights.slice(file.start, file.stop - file.start)
        write_batch(rows, stream_folder(folder, file.stream), file.number)


def write_batch(rows: pa.Table, folder: Path, number: int) -> None:
    """Write the file of one micro-batch of a stream into the stream's folder."""
    path = folder / f"{number:05d}.parquet"
    pq.write_table(rows, path)
    time_s = _FIRST_FILE_TIME_S + number
    os.utime(path, (time_s, time_s))


def stream_folder(folder: Path, stream: int) -> Path:
    """Return the folder of a stream's files."""
    return folder / f"stream-{stream + 1:02d}"
