"""Inbox keys from any producer, not trusted: a name in a folder, a word in a doorbell."""

from __future__ import annotations

from typing import Self
from uuid import UUID

from committer.ports.queue import shard_of
from committer.request.request_key import RequestKey, parse_inbox_key

_NAME_SHOWN_MAX = 1_000


def parsed(key: str) -> RequestKey | None:
    """Parse an inbox key; None if it is none."""
    try:
        return parse_inbox_key(key)
    except ValueError:
        return None


def table_folder_of(key: str) -> str:
    """Return the folder of a key's table: the table's uuid."""
    return key.partition("/")[0]


def folder_of(key: str) -> str:
    """Return the folder of a key's producer: `committer.request.request_key.producer_prefix`."""
    end = key.find("/", key.find("/") + 1)
    return key if end < 0 else key[:end]


class InboxKey(str):
    """An inbox key, parsed once: where a doorbell or a listing names it. `parts`: None of any other
    name. `folder`: of its producer.
    """

    __slots__ = ("folder", "parts")
    folder: str
    parts: RequestKey | None

    def __new__(cls, text: str) -> Self:
        key = super().__new__(cls, text)
        key.folder = folder_of(text)
        key.parts = parsed(text)
        return key

    @property
    def shard(self) -> int:
        """The shard of the request's table; of what is no inbox key, always the same one."""
        return 0 if self.parts is None else shard_of(self.parts.table_uuid)


def shard_of_folder(table: str) -> int:
    """Return the shard of a table's folder; of what is no such folder, always the same one."""
    try:
        return shard_of(UUID(table))
    except ValueError:
        return 0


def printable(name: str) -> str:
    """Return a foreign name in a form that a log on a terminal may show."""
    name = name[:_NAME_SHOWN_MAX]
    return name if name.isprintable() else ascii(name)[1:-1]
