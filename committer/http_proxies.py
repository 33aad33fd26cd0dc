"""The HTTP proxy of an address, as the usual variables name it (`HTTPS_PROXY`, `NO_PROXY`, …)."""

from __future__ import annotations

from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass


class HttpProxies:
    """Remembers the proxy of each host: on some systems asking takes long."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], str | None] = {}

    def of(self, url: str) -> str | None:
        """Return the proxy of the URL's host, which may have a password; None: there is none."""
        parts = urlsplit(url)
        place = (parts.scheme, parts.hostname or "")
        if place not in self._known:
            is_direct = proxy_bypass(place[1])
            self._known[place] = None if is_direct else getproxies().get(place[0])
        return self._known[place]
