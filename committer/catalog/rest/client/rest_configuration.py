"""The configuration that a server's `/v1/config` and our own options make together. Pure.

The server's defaults give way to our properties, and those to the server's overrides. Everything
here comes from another machine, so what would change the form of requests is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from committer.catalog.rest.client.rest_answer import texts_in
from committer.catalog.rest.client.rest_auth import is_header_text
from committer.catalog.rest.client.rest_options import RestOptions
from committer.catalog.rest.client.rest_paths import DEFAULT_ENDPOINTS, UNIT_SEPARATOR, Paths
from committer.errors import SettingsError
from committer.url_text import without_secrets

_HEADER_PREFIX = "header."
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# They say where a request ends; the client sets them.
_FRAMING = frozenset({"content-length", "transfer-encoding", "connection", "content-encoding"})
# As it stands between two levels in a path and in a query.
_SEPARATOR = re.compile(r"(?:%[0-9A-Fa-f]{2}|[A-Za-z0-9._~-]){1,32}")


@dataclass(frozen=True, slots=True)
class RestConfiguration:
    """The settings of requests to a REST catalog. `properties` may hold secrets."""

    base: str
    headers: Mapping[str, str] = field(repr=False)
    paths: Paths = field(default_factory=Paths)
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    page_size: int | None = None
    takes_idempotency_keys: bool = False


def first_configuration(options: RestOptions) -> RestConfiguration:
    """Return how the server is asked for its configuration. Errors: `SettingsError`."""
    _check_address(options.uri, f"`uri` {without_secrets(options.uri)}")
    return RestConfiguration(
        options.uri.rstrip("/"),
        _checked_headers(options.headers, ""),
        Paths(options.prefix),
        page_size=options.page_size,
    )


def configuration_of(
    found: Mapping[str, Any], options: RestOptions, own: Mapping[str, str]
) -> RestConfiguration:
    """Lay the answer's defaults below and its overrides above ours. `own`: all our properties.

    Errors: `SettingsError` for an address, a header or a separator that cannot be used.
    """
    defaults, overrides = texts_in(found.get("defaults")), texts_in(found.get("overrides"))
    own_prefix = {"prefix": options.prefix} if options.prefix else {}
    named = {**defaults, **own_prefix, **overrides}
    separator = named.get("namespace-separator", UNIT_SEPARATOR)
    if not _SEPARATOR.fullmatch(separator):
        raise SettingsError(
            f"`uri` {without_secrets(options.uri)}: the catalog's configuration names a"
            f" `namespace-separator` that is not URL-encoded: {separator[:60]!r}"
        )
    return RestConfiguration(
        _base(overrides.get("uri", ""), options),
        {
            **_checked_headers(_below_header(defaults), "the catalog's configuration: "),
            **_checked_headers(options.headers, ""),
            **_checked_headers(_below_header(overrides), "the catalog's configuration: "),
        },
        Paths(named.get("prefix", ""), separator, _endpoints(found.get("endpoints"))),
        {**defaults, **own, **overrides},
        _page_size(named, options),
        found.get("idempotency-key-lifetime") is not None,
    )


def _base(override: str, options: RestOptions) -> str:
    """Return the address of all further calls. Our credentials go there: never in clear text where
    ours was not.
    """
    if not override:
        return options.uri.rstrip("/")
    shown = without_secrets(override)
    what = f"`uri` {without_secrets(options.uri)}: the catalog's configuration names `uri` {shown}"
    _check_address(override, what)
    is_tls, stays_tls = (one.startswith("https:") for one in (options.uri, override))
    if is_tls and not stays_tls:
        raise SettingsError(f"{what}: credentials would leave TLS; expected https://…")
    return override.rstrip("/")


def _check_address(uri: str, what: str) -> None:
    try:
        parts = urlsplit(uri)
        is_address = bool(parts.hostname) and parts.scheme in ("http", "https")
        _ = parts.port  # raises where it is none
    except ValueError:
        is_address = False
    is_plain = uri.isascii() and uri.isprintable() and not set("?#@ \\") & set(uri)
    if not is_address or not is_plain:
        raise SettingsError(
            f"{what}: expected http://HOST or https://HOST, perhaps with a path, and no user,"
            " password or query"
        )


def _checked_headers(headers: Mapping[str, str], where: str) -> dict[str, str]:
    """Return the headers by lower-case names, which are the same on the way."""
    for name, text in headers.items():
        if not (_HEADER_NAME.fullmatch(name) and is_header_text(text)):
            raise SettingsError(
                f"{where}`header.{_shown(name)}`: expected printable ASCII text on one line"
            )
        if name.lower() in _FRAMING:
            raise SettingsError(f"{where}`header.{name}`: the client sets this header itself")
    return {name.lower(): text for name, text in headers.items()}


def _shown(name: str) -> str:
    return "".join(one if one.isprintable() else "·" for one in name[:60])


def _below_header(properties: Mapping[str, str]) -> dict[str, str]:
    return {
        name.removeprefix(_HEADER_PREFIX): text
        for name, text in properties.items()
        if name.startswith(_HEADER_PREFIX)
    }


def _endpoints(found: Any) -> frozenset[str]:
    """Return what the server offers. None said: what the protocol began with."""
    if not isinstance(found, list) or not found:
        return DEFAULT_ENDPOINTS
    return frozenset(" ".join(one.split()) for one in found if isinstance(one, str))


def _page_size(named: Mapping[str, str], options: RestOptions) -> int | None:
    text = named.get("rest-page-size", "")
    if options.page_size is not None or not text.isascii() or not text.isdigit():
        return options.page_size
    return int(text) if 0 < len(text) < 9 else None
