"""One answer of a REST catalog, and the error to raise for it. Nothing here talks to a server.

An error of the protocol has a body: `{"error": {"message": …, "type": …, "code": …}}`. One without
comes from something else on the way, or from a server of another kind.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from textwrap import shorten
from typing import Any
from urllib.parse import urlsplit

import orjson

from committer.errors import (
    AccessError,
    CatalogUnavailableError,
    FrazilError,
    NoSuchNamespaceError,
    NoSuchTableError,
    UnsupportedError,
)
from committer.iceberg.metadata.json_text import load_json

_MESSAGE_CHARS_MAX = 300
_ADDRESS_CHARS_MAX = 400
# Of a page that a gateway answers with, its text is enough.
_TAG = re.compile(r"<[^<>]{0,500}>")
# 419: the token has expired. 440: what some servers say for it.
UNAUTHORIZED = frozenset((401, 419))
_BUSY = frozenset((408, 425, 429))
CLOCK_AHEAD_S_MAX = 30.0
"""Java's servers refuse a snapshot whose time is more than a minute after theirs."""


class LostAnswerError(Exception):
    """A request was sent, perhaps in part, and its answer did not come: it may have been applied,
    or may be later. The text names the request and the cause.
    """


class AnswerTooLargeError(LostAnswerError):
    """An answer has more bytes than are read. `size_bytes`: as many as it says, or as came."""

    def __init__(self, text: str, size_bytes: int) -> None:
        super().__init__(text)
        self.size_bytes = size_bytes


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """The protocol's error: its type (Java's name of an exception) and its message."""

    type: str
    message: str

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.type, self.message)))


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to `what` (method and address, without secrets). Names of headers in lower case.

    `is_resent`: the answer to an earlier send of the same request was lost. A refusal then tells
    nothing of that one. `sent_ms`: our clock before the request was sent.
    """

    what: str
    status: int
    headers: Mapping[str, str]
    content: bytes
    is_resent: bool = False
    sent_ms: int | None = None

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    @property
    def error(self) -> ErrorBody | None:
        """The protocol's error; None where the body is none."""
        try:
            found = orjson.loads(self.content)["error"]
            kind, message = found.get("type") or "", found.get("message") or ""
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
            return None
        if not (isinstance(kind, str) and isinstance(message, str)):
            return None
        return ErrorBody(_brief(kind), _brief(message))

    def is_error(self, status: int, *types: str) -> bool:
        """Return whether it is the protocol's error of this status and one of these types."""
        error = self.error
        return self.status == status and error is not None and error.type in types

    def __str__(self) -> str:
        """Say what was answered, in one line."""
        error = self.error
        page = _TAG.sub(" ", self.content[:2_000].decode(errors="replace"))
        text = str(error) if error else _brief(page)
        return f"{self.what}: HTTP {self.status}" + (f" {text}" if text else "")

    def json(self) -> Any:
        """Return the body. Errors: `CatalogUnavailableError` where it is no JSON object: another
        server has answered, or the answer came in damaged.
        """
        try:
            found = load_json(self.content)
        except ValueError as error:
            raise CatalogUnavailableError(f"{self.what}: the answer is not JSON") from error
        if not isinstance(found, dict):
            raise CatalogUnavailableError(f"{self.what}: the answer is not a JSON object")
        return found

    def require_success(self) -> None:
        """Return if the answer is a success. Errors: `as_error`."""
        if not self.is_success:
            raise self.as_error()

    def as_error(self) -> FrazilError:
        """Return the error to raise for an answer that the caller does not expect."""
        if self.status in UNAUTHORIZED:
            return AccessError(
                f"{self}: the catalog does not accept the credentials; check `token`, `credential`"
                " and `oauth2-server-uri`, or the key pair of SigV4"
            )
        if self.status == 403:
            return AccessError(f"{self}: the catalog's user lacks a right for it")
        if self.is_error(404, "NoSuchTableException"):
            return NoSuchTableError(str(self))
        if self.is_error(404, "NoSuchNamespaceException"):
            return NoSuchNamespaceError(str(self))
        if self.status in _BUSY or self.status >= 500:
            return CatalogUnavailableError(str(self))
        if 300 <= self.status < 400:
            return AccessError(
                f"{self}: it redirects{self._redirected_to}, which is not followed, since"
                " credentials would go along; let `uri` name the address that answers"
            )
        if self.status in (405, 406, 501):
            return UnsupportedError(f"{self}: the catalog does not offer it")
        return AccessError(f"{self}: refused")

    @property
    def clock_ahead_s(self) -> float:
        """How far our clock is ahead of the server's, at least; 0 where it is not, or the answer
        has no date. The server has dated the answer after the request was sent.
        """
        try:
            dated = parsedate_to_datetime(self.headers["date"])
            # Dates are cut to seconds; without a zone they are of UTC.
            dated_s = dated.replace(tzinfo=dated.tzinfo or UTC).timestamp() + 1.0
        except (KeyError, ValueError, OverflowError):
            return 0.0
        return 0.0 if self.sent_ms is None else max(0.0, self.sent_ms / 1000 - dated_s)

    @property
    def _redirected_to(self) -> str:
        try:
            host = urlsplit(self.headers.get("location", "")).hostname
        except ValueError:
            host = None
        return f" to {_brief(host)}" if host else ""


def texts_in(found: object) -> dict[str, str]:
    """Return the properties of an object in an answer; what is no text is left out."""
    if not isinstance(found, dict):
        return {}
    return {key: text for key, text in found.items() if isinstance(text, str)}


def address_text(url: str) -> str:
    """Return a URL for a message, which a server may have made as long as it likes."""
    return url if len(url) <= _ADDRESS_CHARS_MAX else f"{url[:_ADDRESS_CHARS_MAX]}…"


def _brief(text: str) -> str:
    shown = shorten(text, _MESSAGE_CHARS_MAX, placeholder=" …")
    return "".join(part if part.isprintable() else "·" for part in shown)
