"""Inbox keys: the names under which requests wait in the inbox."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote, unquote
from uuid import UUID


@dataclass(frozen=True, slots=True)
class RequestKey:
    """The parts of an inbox key. `replay`: drawn at random for each replay from quarantine, so that
    no object had the key before.
    """

    table_uuid: UUID
    producer: str
    epoch: int
    attempt: UUID
    replay: UUID | None = None


def producer_prefix(table_uuid: UUID, producer: str) -> str:
    """Return the folder of one producer's requests. Sorts by table, then producer."""
    return f"{table_uuid}/{_quoted(producer)}"


def inbox_key(
    table_uuid: UUID, producer: str, epoch: int, attempt: UUID, replay: UUID | None = None
) -> str:
    """Print `<table uuid>/<producer>/<epoch, 20 digits>/<attempt>`, of a replay
    `<attempt>.<replay>`; the producer is percent-encoded.
    """
    published = f"{producer_prefix(table_uuid, producer)}/{epoch:020d}/{attempt}"
    return published if replay is None else f"{published}.{replay}"


def published_key(key: str) -> str:
    """Return the key under which a request was published: all of its replays share it."""
    folder, slash, name = key.rpartition("/")
    return f"{folder}{slash}{name.partition('.')[0]}"


def parse_inbox_key(key: str) -> RequestKey:
    """Parse an inbox key: the inverse of `inbox_key`.
    Errors: `ValueError` for what `inbox_key` never prints."""
    table_uuid, producer, epoch, name = key.split("/")
    if _PLAIN_KEY.fullmatch(key):
        return RequestKey(UUID(table_uuid), producer, int(epoch), UUID(name))
    attempt, dot, replay = name.partition(".")
    parts = (
        UUID(table_uuid),
        path_segment(unquote(producer)),
        int(epoch),
        UUID(attempt),
        UUID(replay) if dot else None,
    )
    if inbox_key(*parts) != key:
        raise ValueError(f"not an inbox key: `{key}`")
    return RequestKey(*parts)


_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
# Of a producer whose id needs no escapes: most keys.
_PLAIN_KEY = re.compile(rf"{_UUID}/[A-Za-z0-9_~-]{{1,200}}/[0-9]{{20}}/{_UUID}")


def is_inbox_key(key: str) -> bool:
    """Return whether `parse_inbox_key` can parse a key."""
    if _PLAIN_KEY.fullmatch(key):
        return True
    try:
        parse_inbox_key(key)
    except ValueError:
        return False
    return True


def is_key_of(key: str, published: str) -> bool:
    """Return whether an object of this key may hold the request of a published key."""
    if key == published:
        return True
    return is_inbox_key(key) and published_key(key) == published


def path_segment(text: str) -> str:
    """Check a producer's id: it is one segment of an inbox key."""
    if text in ("", ".", "..") or len(_quoted(text)) > 200:
        raise ValueError("expected 1 to 200 characters once percent-encoded, not `.` or `..`")
    return text


@lru_cache(maxsize=4096)
def _quoted(text: str) -> str:
    return quote(text, safe="")
