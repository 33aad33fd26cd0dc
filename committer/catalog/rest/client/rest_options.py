"""The options of a REST catalog: a value that the adapter is opened with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

ANSWER_BYTES_MAX = 1 << 28


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuth2Options:
    """A token, or the credential that fetches one, or both: then the token is used first.

    `credential`: `id:secret`, or the secret alone. `server_uri`: empty for the catalog's own token
    endpoint, which the protocol deprecates.
    """

    token: str = field(default="", repr=False)
    credential: str = field(default="", repr=False)
    server_uri: str = ""
    scope: str = "catalog"
    audience: str = ""
    resource: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BasicOptions:
    """A user name and a password, sent with each request."""

    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsOptions:
    """Paths of PEM files: authorities to trust, and the client's certificate with its key."""

    ca_bundle: str = ""
    client_certificate: str = ""
    client_key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestOptions:
    """The options that a client is opened with. The server's configuration may replace `prefix`,
    `page_size` and `headers`, and the address of everything but itself.
    """

    uri: str
    warehouse: str = ""
    prefix: str = ""
    page_size: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    tls: TlsOptions = TlsOptions()
    connect_timeout_s: float = 5.0
    read_timeout_s: float = 60.0
    """Java's servers try their own back end again within one request."""
    answer_bytes_max: int = ANSWER_BYTES_MAX
    """Of one answer: a table's metadata, or one page of a list."""
    large_table_advice: str = ""
    """The remedy where an answer with a table is larger."""
