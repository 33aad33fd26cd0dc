"""Moto's Glue and S3 Tables as one process that is atomic and checks versions, as AWS does.

Moto alone takes any `VersionId`, and lets two swaps of one version win: its threads check first and
write later. Here one lock holds every call, and a stale `VersionId` is refused before moto sees it.
What this proves: the shapes of calls and answers, and the adapters' use of conditions. What it does
not: anything that AWS does otherwise than moto (limits, rights, consistency, its own retries).

Run as a program: prints the port that it listens on, on this machine only. An access key of twelve
digits is an account, so each test has an empty one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from io import BytesIO
from threading import Lock
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

_UPDATE = "AWSGlue.UpdateTable"
_GET = "AWSGlue.GetTable"
_JSON = "application/x-amz-json-1.1"
Application = Callable[[WSGIEnvironment, StartResponse], Iterable[bytes]]


class CheckedMoto:
    """The WSGI application around moto's."""

    def __init__(self, inner: Application) -> None:
        self._inner = inner
        self._lock = Lock()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        body = _body(environ)
        environ["HTTP_X_MOTO_ACCOUNT_ID"] = _account(environ)
        with self._lock:
            if environ.get("HTTP_X_AMZ_TARGET") == _UPDATE and self._is_stale(environ, body):
                return _refuse(start_response, "ConcurrentModificationException")
            return self._ask(environ, body, start_response)

    def _is_stale(self, environ: WSGIEnvironment, body: bytes) -> bool:
        """Return whether the call names a version that the table does not have now."""
        call = json.loads(body)
        asked = {"DatabaseName": call["DatabaseName"], "Name": call["TableInput"]["Name"]}
        answer = b"".join(
            self._ask({**environ, "HTTP_X_AMZ_TARGET": _GET}, json.dumps(asked).encode(), _ignore)
        )
        version = json.loads(answer).get("Table", {}).get("VersionId")
        return "VersionId" in call and version not in (None, call["VersionId"])

    def _ask(
        self, environ: WSGIEnvironment, body: bytes, start_response: StartResponse
    ) -> list[bytes]:
        call = {**environ, "wsgi.input": BytesIO(body), "CONTENT_LENGTH": str(len(body))}
        return list(self._inner(call, start_response))


def _body(environ: WSGIEnvironment) -> bytes:
    """Read the body of a request: all of one that comes in chunks, as clients of S3 send files."""
    stream: Any = environ["wsgi.input"]
    if environ.pop("HTTP_TRANSFER_ENCODING", "") == "chunked":
        return bytes(stream.read())
    return bytes(stream.read(int(environ.get("CONTENT_LENGTH") or 0)))


def _account(environ: WSGIEnvironment) -> str:
    """Return the access key that the request is signed with: the account of its test."""
    signed = environ.get("HTTP_AUTHORIZATION", "")
    key = str(signed).partition("Credential=")[2].partition("/")[0]
    return key if key.isdecimal() and len(key) == 12 else "123456789012"


def _refuse(start_response: StartResponse, code: str) -> list[bytes]:
    start_response("400 Bad Request", [("Content-Type", _JSON)])
    return [json.dumps({"__type": code, "Message": "the table has another version"}).encode()]


def _ignore(status: str, headers: list[tuple[str, str]], error: Any = None) -> Any:
    """Take the head of an answer that only this module reads."""


class _Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        pass


def main() -> None:
    application = CheckedMoto(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=_Quiet)
    print(server.port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
