"""Ports of this machine for servers that tests start."""

from __future__ import annotations

import itertools
import os
import socket

# Below those that the system gives to clients, and to servers that ask for any.
_FIRST, _COUNT = 10_000, 22_000
# Each process of tests counts from elsewhere: a port is taken only once its server has started, and
# until then another process would find it free, too.
_numbers = itertools.count(os.getpid() * 997)


def free_port() -> int:
    """Return a port that no process listens on at the moment."""
    while True:
        port = _FIRST + next(_numbers) % _COUNT
        try:
            with socket.create_server(("127.0.0.1", port)):
                return port
        except OSError:
            continue
