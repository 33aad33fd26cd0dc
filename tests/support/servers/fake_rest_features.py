"""What a test can tell the fake REST catalog: what it announces, and answers that it spoils."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.support.servers.fake_rest_access import SigV4Check, Vended

USUAL_SEPARATOR = "\x1f"
"""Between the levels of a namespace in a path, unless `/v1/config` announces another."""


@dataclass(frozen=True, slots=True)
class Planned:
    """An answer in place of the first that fits: an error, or what a faulty gateway makes of it."""

    method: str
    path: str
    """A part of the path, decoded."""
    status: int = 0
    """The status of the answer; 0: the server's own."""
    kind: str = "ServerErrorException"
    is_applied: bool = False
    """Whether the server handles the request before the answer is replaced."""
    is_resent: bool = False
    """The gateway lost the server's answer and sends the request again; the client gets the second
    answer: 409 after its own success."""
    body: bytes | None = None
    """The body in place of an Iceberg error."""


@dataclass(slots=True)
class Features:
    """What the server announces and does beside the ordinary."""

    separator: str = USUAL_SEPARATOR
    endpoints: tuple[str, ...] | None = None
    """The endpoints that `/v1/config` announces; None: none, so that the usual ones hold."""
    page_size_max: int | None = None
    """The most names of a page, also where the client asks for more or for no pages."""
    idempotency_lifetime: str = ""
    """As announced, `PT30M`; empty: keys are ignored."""
    shows_metadata_location: bool | str = True
    """Whether loads name the metadata file; or the page that they name in its place."""
    has_etags: bool = True
    vend: Callable[[int], Vended] | None = None
    """Makes the credentials of the answer of this number, counted from 1."""
    vends_unasked: bool = False
    """Whether it vends also where no header asks for it."""
    signing: SigV4Check | None = None
    defaults: dict[str, str] = field(default_factory=dict)
    overrides: dict[str, str] = field(default_factory=dict)
