"""The messages between the driver and the tasks of one application, as bytes in columns.

Known to both: format only.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

# Of the DataFrame of what tasks tell the driver.
MESSAGE_SCHEMA = "message binary"


def packed(value: object) -> bytes:
    return pickle.dumps(value)


def unpacked(content: bytes) -> Any:
    """Read what `packed` made: in this very application, and nowhere else."""
    return pickle.loads(content)  # noqa: S301


def message_batch(message: object) -> pa.RecordBatch:
    """Return a task's message as its one row."""
    return pa.RecordBatch.from_pydict({"message": pa.array([packed(message)])})


def read_messages(rows: Iterable[Any]) -> list[Any]:
    """Return the messages in rows that were collected."""
    return [unpacked(bytes(row["message"])) for row in rows]
