"""The operations that a request may ask for without a signature that was verified. No I/O.

A client that can write to the inbox can publish requests. Where that is more clients than may
change a table, the others may append rows and nothing else (`security.unsigned_operations`, or the
property of a table, which no request can set).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import get_args

from committer.request.commit_request import CommitRequest
from committer.request.needs import Operation

UNSIGNED_PROPERTY = "frazil.unsigned-operations"
CHECK_FILES_PROPERTY = "frazil.check-unsigned-files"
ALL_OPERATIONS: frozenset[str] = frozenset(get_args(Operation))
APPEND_ONLY: frozenset[str] = frozenset({"append"})
EXPECTED = "`all`, `none`, or operations with commas between them"
_WORDS = {"all": ALL_OPERATIONS, "none": frozenset[str]()}


@lru_cache(maxsize=64)
def parse_operations(text: str) -> frozenset[str]:
    """Return the operations that a text names with commas between them; `all` and `none` stand
    alone. Errors: `ValueError`.
    """
    names = frozenset(filter(None, (name.strip().lower() for name in text.split(","))))
    for word, operations in _WORDS.items():
        if names == {word}:
            return operations
    if not names or not names <= ALL_OPERATIONS:
        raise ValueError(f"expected {EXPECTED} ({listed(ALL_OPERATIONS)}); found `{text[:100]}`")
    return names


def asked_operations(request: CommitRequest) -> frozenset[str]:
    """Return the operations that a request asks for: an append that changes the schema for its
    files is an `alter`, too.
    """
    if request.changes:
        return frozenset({request.operation, "alter"})
    return frozenset({request.operation})


def listed(operations: Iterable[str]) -> str:
    """Return operations for a message."""
    return ", ".join(f"`{name}`" for name in sorted(operations)) or "no operation"
