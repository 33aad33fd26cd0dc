"""URLs as messages may show them, and hosts that no other machine reaches."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

_JDBC = "jdbc:"
_UNREADABLE = "(unreadable)"


def without_secrets(url: str) -> str:
    """Return `redis://host:6379/0` of `redis://user:password@host:6379/0?option=…`.

    A password with a bare `/`, `?` or `#` is cut there: such a URL is not shown at all.
    """
    if url.startswith(_JDBC):
        shown = without_secrets(url.removeprefix(_JDBC))
        return shown if shown == _UNREADABLE else f"{_JDBC}{shown}"
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises where the start of a password stands for it
    except ValueError:
        return _UNREADABLE
    if "://" not in url:
        return _UNREADABLE
    if not parts.netloc:  # a path, which may hold a `#`
        return url.partition("?")[0]
    if "@" in f"{parts.path}{parts.query}{parts.fragment}":
        return _UNREADABLE
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def is_address(host: str) -> bool:
    """Return whether a host is an IP address, and no name."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine, for itself alone."""
    return host.lower() == "localhost" or (is_address(host) and ip_address(host).is_loopback)
