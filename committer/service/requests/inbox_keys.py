"""Inbox keys as anybody may have written them: a name in a folder, a word in a doorbell."""

from __future__ import annotations

from committer.ports.queue import shard_of
from committer.request.request_key import RequestKey, parse_inbox_key

_NAME_SHOWN_MAX = 1_000


def parsed(key: str) -> RequestKey | None:
    """The parts of an inbox key; None of what is no such key."""
    try:
        return parse_inbox_key(key)
    except ValueError:
        return None


def shard_of_key(key: str) -> int:
    """The shard of a request's table; of what is no inbox key, always the same one."""
    parts = parsed(key)
    return 0 if parts is None else shard_of(parts.table_uuid)


def folder_of(key: str) -> str:
    """The folder of a key's producer: `committer.request.request_key.producer_prefix`."""
    return "/".join(key.split("/", 2)[:2])


def printable(name: str) -> str:
    """A name that others have chosen, for a log that a terminal may show."""
    name = name[:_NAME_SHOWN_MAX]
    return name if name.isprintable() else ascii(name)[1:-1]
