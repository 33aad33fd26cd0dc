"""Inbox keys: the names under which requests wait in the inbox."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote, unquote
from uuid import UUID


@dataclass(frozen=True, slots=True)
class RequestKey:
    """The parts of an inbox key."""

    table_uuid: UUID
    producer: str
    epoch: int
    attempt: UUID


def producer_prefix(table_uuid: UUID, producer: str) -> str:
    """The folder of one producer's requests. Sorts by table, then producer."""
    return f"{table_uuid}/{_quoted(producer)}"


def inbox_key(table_uuid: UUID, producer: str, epoch: int, attempt: UUID) -> str:
    """`<table uuid>/<producer>/<epoch, 20 digits>/<attempt>`; the producer is percent-encoded."""
    return f"{producer_prefix(table_uuid, producer)}/{epoch:020d}/{attempt}"


def parse_inbox_key(key: str) -> RequestKey:
    """The inverse of `inbox_key`. Errors: `ValueError` for what `inbox_key` never prints."""
    table_uuid, producer, epoch, attempt = key.split("/")
    parsed = RequestKey(
        UUID(table_uuid), path_segment(unquote(producer)), int(epoch), UUID(attempt)
    )
    if inbox_key(parsed.table_uuid, parsed.producer, parsed.epoch, parsed.attempt) != key:
        raise ValueError(f"not an inbox key: `{key}`")
    return parsed


def path_segment(text: str) -> str:
    """A producer's id is one segment of an inbox key."""
    if text in ("", ".", "..") or len(_quoted(text)) > 200:
        raise ValueError("expected 1 to 200 characters once percent-encoded, not `.` or `..`")
    return text


@lru_cache(maxsize=4096)
def _quoted(text: str) -> str:
    return quote(text, safe="")
