"""An HTTP client for object stores that sends each request once, and what its answers mean.

aiohttp by itself sends "repeatable" methods again when a kept-alive connection breaks, follows
redirects, and waits for ever while a body is sent: all three are off here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from textwrap import shorten

import aiohttp
from yarl import URL

from committer.errors import AccessError, FrazilError, StorageUnavailableError
from committer.http_proxies import HttpProxies
from committer.storage.repeated_calls import Failure

# The least throughput of a connection, even of one of many on a slow line.
_BYTES_A_SECOND_MIN = 64 * 1024
# The size of an answer that does not say how large it is: a page of a listing, a refusal.
_UNKNOWN_BYTES_MAX = 4 * 1024 * 1024
_BRIEF_CHARS_MAX = 300
_REFUSAL_BYTES_MAX = 64 * 1024


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Connections and times of one client."""

    connections_max: int = 64
    connect_timeout_s: float = 5.0
    read_timeout_s: float = 20.0


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request. `url` is encoded already; headers and query may hold secrets.

    `check` sees the head of an answer below 300 before its body is read, and may raise.
    """

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)
    check: Callable[[HttpAnswer], None] | None = None


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer in full. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    def header(self, name: str) -> str:
        """Return a header that the answer of the right server has.

        Errors: `NoAnswerError`: another server has answered.
        """
        if name not in self.headers:
            raise NoAnswerError(f"another server has answered: the header `{name}` is missing")
        return self.headers[name]


class NoAnswerError(Exception):
    """No answer came, or not one of the right server. The request may have been applied."""


class NotSentError(NoAnswerError):
    """The request has not left this machine."""


class RefusalError(Exception):
    """The server has refused. `code` is its own; empty where it has not said one, as a gateway."""

    def __init__(self, answer: HttpAnswer, code: str, message: str) -> None:
        text = f"{answer.status} {code}: {message}".rstrip(": ")
        super().__init__(shorten(text, _BRIEF_CHARS_MAX, placeholder=" …"))
        self.answer = answer
        self.code = code

    @property
    def status(self) -> int:
        return self.answer.status


HTTP_ERRORS = (NoAnswerError, RefusalError)


def judge(error: Exception) -> Failure:
    """Judge an error of a try: by the status, for stores whose statuses mean what HTTP says."""
    if not isinstance(error, RefusalError):
        return Failure(
            is_passing=True, is_slow_down=False, is_refusal=isinstance(error, NotSentError)
        )
    status = error.status
    return Failure(
        is_passing=status in (408, 429) or (status >= 500 and status != 501),
        is_slow_down=status in (429, 503),
        is_refusal=status == 429 or (bool(error.code) and 300 <= status < 500 and status != 408),
    )


def explain(error: Exception, what: str, advice: Mapping[str, str]) -> FrazilError:
    """Translate one of `HTTP_ERRORS`. `what` names the call and its object; `advice` has a sentence
    for codes of the store, and for statuses where the code has none.
    """
    if judge(error).is_passing or not isinstance(error, RefusalError):
        return StorageUnavailableError(f"{what}: {error}")
    for key in (error.code, str(error.status)):
        if sentence := advice.get(key):
            return AccessError(f"{what}: {sentence} ({error})")
    return AccessError(f"{what}: refused: {error}")


class HttpClient:
    """One session of aiohttp, of the running event loop."""

    def __init__(self, limits: HttpLimits) -> None:
        self._limits = limits
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=limits.connections_max),
            timeout=aiohttp.ClientTimeout(
                total=None,
                sock_connect=limits.connect_timeout_s,
                sock_read=limits.read_timeout_s,
            ),
            auto_decompress=False,
            skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        self._session._retry_connection = False
        self._proxies = HttpProxies()

    async def send(self, request: HttpRequest) -> HttpAnswer:
        """Send a request once, and read the answer to its end: each in a time that its size allows,
        however the bytes trickle.

        Errors: `NoAnswerError`; those of `request.check`. A refusal is an answer.
        """
        limits = self._limits
        waits_s = limits.connect_timeout_s + limits.read_timeout_s
        try:
            async with asyncio.timeout(waits_s + len(request.body) / _BYTES_A_SECOND_MIN) as limit:
                return await self._send(request, limit)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise NotSentError(_words(error)) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise NoAnswerError(_words(error)) from error

    async def _send(self, request: HttpRequest, limit: asyncio.Timeout) -> HttpAnswer:
        async with self._session.request(
            request.method,
            URL(request.url, encoded=True),
            headers={"User-Agent": "frazil", **request.headers},
            data=BytesIO(request.body) if request.body else None,
            allow_redirects=False,
            proxy=self._proxies.of(request.url),
        ) as response:
            headers = {name.lower(): text for name, text in response.headers.items()}
            limit.reschedule(self._body_until_s(response.content_length))
            if response.status >= 300:
                return HttpAnswer(response.status, headers, await _start_of(response.content))
            if request.check is not None:
                request.check(HttpAnswer(response.status, headers, b""))
            return HttpAnswer(response.status, headers, await response.read())

    def _body_until_s(self, size_bytes: int | None) -> float:
        """Return when a body that begins now has to be there, on the loop's clock."""
        size_bytes = _UNKNOWN_BYTES_MAX if size_bytes is None else size_bytes
        now_s = asyncio.get_running_loop().time()
        return now_s + self._limits.read_timeout_s + size_bytes / _BYTES_A_SECOND_MIN

    async def close(self) -> None:
        await self._session.close()


async def _start_of(content: aiohttp.StreamReader) -> bytes:
    """Read what a refusal says, which may come in pieces, but no page of megabytes."""
    found = b""
    while len(found) < _REFUSAL_BYTES_MAX:
        piece = await content.read(_REFUSAL_BYTES_MAX - len(found))
        if not piece:
            break
        found += piece
    return found


def _words(error: Exception) -> str:
    if isinstance(error, aiohttp.InvalidURL):
        return "its URL is not valid"  # which may hold a token
    return f"{type(error).__name__}: {error}".rstrip(": ")


def whole_size(answer: HttpAnswer) -> int:
    """Return the size of the object, also if a range of it was asked for: `bytes 0-9/4711`."""
    if answer.status == 206:
        text = answer.header("content-range").rpartition("/")[2]
    else:
        text = answer.header("content-length")
    if not text.isdigit():
        raise NoAnswerError(f"another server has answered: `{text}` is no size")
    return int(text)
