"""Entries in the place of a request in the inbox, and doorbells that announce other content."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from uuid import UUID

from committer.ports.pointer_swap import LoadedTable
from committer.reason import Reason
from tests.corpus.hostile import Hostile, Sent
from tests.support.builders.bad_requests import good

# --- Entries that are no files -------------------------------------------------------------------


def _socket(path: Path) -> None:
    # By its folder, for the name of a socket has a hundred bytes at most.
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)


def _link(target: str, path: Path) -> None:
    path.symlink_to(target)


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


def _entry(name: str, make: Callable[[Path], object], reason: Reason) -> Hostile:
    def send(table: LoadedTable, producer: str) -> Sent:
        return Sent(good(table, producer).request.inbox_key, b"", make=make)

    return Hostile(f"in the inbox: {name}", reason, send)


ENTRIES: tuple[Hostile, ...] = (
    _entry("a FIFO", os.mkfifo, Reason.REQUEST_NOT_A_FILE),
    _entry("a socket", _socket, Reason.REQUEST_NOT_A_FILE),
    _entry("a folder", Path.mkdir, Reason.REQUEST_NOT_A_FILE),
    _entry("a link to itself", lambda path: path.symlink_to(path), Reason.REQUEST_NOT_A_FILE),
    *(
        _entry(f"a link to {what}", partial(_link, target), Reason.REQUEST_NOT_A_FILE)
        for what, target in {
            "a file": "/etc/hostname",
            "a device": "/dev/zero",
            "a folder": "/",
            "nothing": "nowhere",
        }.items()
    ),
    _entry("a tebibyte of nothing", _sparse, Reason.REQUEST_TOO_LARGE),
)

# --- Doorbells -----------------------------------------------------------------------------------


def forged(hostile: Hostile) -> Hostile:
    """Return a valid request whose doorbell carries a hostile one: the one in the inbox lands."""

    def send(table: LoadedTable, producer: str) -> Sent:
        told = hostile.send(table, producer)
        nonce = UUID(json.loads(told.content.partition(b"\n")[0])["nonce"])
        right = good(table, producer, nonce=nonce)
        return Sent(right.request.inbox_key, right.content, told=told.content)

    return Hostile(f"told by a doorbell: {hostile.name}", None, send)


def _told(name: str, told: bytes) -> Hostile:
    def send(table: LoadedTable, producer: str) -> Sent:
        right = good(table, producer)
        return Sent(right.request.inbox_key, right.content, told=told)

    return Hostile(f"told by a doorbell: {name}", None, send)


GARBAGE: tuple[Hostile, ...] = tuple(
    _told(name, content)
    for name, content in {
        "nothing": b"",
        "a newline": b"\n",
        "no JSON": b"\xff\xfe\n",
        "an object": b"{}\n",
        "brackets": b"[" * 10_000 + b"\n",
        "NUL bytes": b"\0" * 100,
        "a manifest": b"Obj\x01" + bytes(100),
    }.items()
)
