"""A fake REST catalog of ours: shows a client what no REST server here can be made to show.

It is not Iceberg's own fixture, which the contract suite runs on, and proves nothing about real
servers. It stands for what they answer, by their sources: tokens that expire, vended credentials,
a 400 for timing, a gateway that resends, a name that a dropped table blocks, and more.

    async with FakeRest(storage, warehouse="memory://warehouse") as fake:
        fake.tokens.credential = "id:secret"
        fake.plan(Planned("POST", "/tables/flights", status=500, is_applied=True))
        ... talk to the server at fake.url ...

Everything is in memory and in the loop of the test. Nothing depends on time but `clock`.
"""

from __future__ import annotations

import json
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, Self

from aiohttp import web

from committer.errors import InvalidMetadataError
from committer.iceberg.metadata.table_metadata import print_table_metadata
from committer.ports.pointer_swap import LoadedTable
from committer.ports.storage import Storage
from committer.request.table_identifier import TableIdentifier
from tests.support.servers.fake_rest_access import FakeClock, TokenIssuer, Vended
from tests.support.servers.fake_rest_features import USUAL_SEPARATOR, Features, Planned
from tests.support.servers.fake_rest_tables import FakeTables, Judgment, Namespace, Refusal

_TABLE = "/namespaces/{namespace}/tables/{table}"
_MALFORMED = (KeyError, TypeError, ValueError, InvalidMetadataError)
PREFIX = "fake"
"""The prefix that `/v1/config` gives for the paths of everything else."""


class FakeRest:
    """The server. `counts` has the number of requests by method and kind of path."""

    def __init__(
        self, storage: Storage, *, warehouse: str, tls: ssl.SSLContext | None = None
    ) -> None:
        self._tls = tls
        self.clock = FakeClock()
        self.tokens = TokenIssuer(self.clock)
        self.tables = FakeTables(storage, warehouse)
        self.features = Features()
        self.counts: Counter[str] = Counter()
        self.headers: list[Mapping[str, str]] = []
        self.vended = 0
        self._planned: list[Planned] = []
        self._remembered: dict[str, web.Response] = {}
        self._runner: web.AppRunner
        self.url = ""

    @property
    def judgment(self) -> Judgment:
        return self.tables.judgment

    def plan(self, *planned: Planned) -> None:
        """Spoil the next requests that fit, in order."""
        self._planned.extend(planned)

    async def __aenter__(self) -> Self:
        app = web.Application(middlewares=[self._outer])
        self._add_routes(app)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._tls).start()
        scheme = "https" if self._tls else "http"
        self.url = f"{scheme}://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._runner.cleanup()

    def _add_routes(self, app: web.Application) -> None:
        add, below = app.router.add_route, f"/v1/{PREFIX}"
        add("GET", "/v1/config", self._config)
        add("POST", "/v1/oauth/tokens", self._token)
        add("GET", f"{below}/namespaces", self._list_namespaces)
        add("POST", f"{below}/namespaces", self._create_namespace)
        add("*", f"{below}/namespaces/{{namespace}}", self._namespace)
        add("POST", f"{below}/namespaces/{{namespace}}/properties", self._set_properties)
        add("GET", f"{below}/namespaces/{{namespace}}/tables", self._list_tables)
        add("POST", f"{below}/namespaces/{{namespace}}/tables", self._create_table)
        add("POST", f"{below}/namespaces/{{namespace}}/register", self._register)
        add("GET", f"{below}{_TABLE}", self._load)
        add("HEAD", f"{below}{_TABLE}", self._load)
        add("POST", f"{below}{_TABLE}", self._commit)
        add("DELETE", f"{below}{_TABLE}", self._drop)
        add("GET", f"{below}{_TABLE}/credentials", self._credentials)
        add("POST", f"{below}{_TABLE}/unregister", self._unregister)
        add("POST", f"{below}/tables/rename", self._rename)
        add("POST", f"{below}/transactions/commit", self._commit_several)

    # --- What happens to every request -----------------------------------------------------------

    @web.middleware
    async def _outer(
        self,
        request: web.Request,
        handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        self.counts[_kind(request)] += 1
        self.headers.append(request.headers.copy())
        planned = self._strike(request)
        if planned is not None and planned.status and not planned.is_applied:
            return _spoiled(planned)
        answer = await self._guarded(request, handler)
        if planned is None:
            return answer
        if planned.is_resent:
            return await self._guarded(request, handler)
        return _spoiled(planned)

    async def _guarded(
        self,
        request: web.Request,
        handle: Callable[[web.Request], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        try:
            if request.path != "/v1/oauth/tokens":
                await self._check_access(request)
            return await self._once(request, handle)
        except Refusal as refusal:
            return _error(refusal.status, refusal.kind, refusal.message)
        except _MALFORMED as error:
            return _error(400, "BadRequestException", f"malformed: {error}")

    async def _check_access(self, request: web.Request) -> None:
        if (signing := self.features.signing) is not None:
            url = f"{request.scheme}://{request.host}{request.raw_path}"
            signing.check(request.method, url, request.headers, await request.read())
        else:
            self.tokens.check(request.headers.get("Authorization", ""))

    async def _once(
        self,
        request: web.Request,
        handle: Callable[[web.Request], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        """Handle a request, or repeat the answer to an earlier one of the same key."""
        key = request.headers.get("Idempotency-Key", "")
        if not key or not self.features.idempotency_lifetime or request.method == "GET":
            return await handle(request)
        if (known := self._remembered.get(key)) is not None:
            self.counts["repeated by key"] += 1
            return web.Response(status=known.status, body=known.body, headers=known.headers)
        answer = await handle(request)
        assert isinstance(answer, web.Response)
        self._remembered[key] = answer
        return answer

    def _strike(self, request: web.Request) -> Planned | None:
        for place, planned in enumerate(self._planned):
            if planned.method == request.method and planned.path in request.path:
                return self._planned.pop(place)
        return None

    # --- Configuration and tokens ----------------------------------------------------------------

    async def _config(self, request: web.Request) -> web.Response:
        features, overrides = self.features, {"prefix": PREFIX, **self.features.overrides}
        if features.separator != USUAL_SEPARATOR:
            overrides["namespace-separator"] = "".join(
                f"%{byte:02X}" for byte in features.separator.encode()
            )
        answer: dict[str, Any] = {"defaults": features.defaults, "overrides": overrides}
        if features.endpoints is not None:
            answer["endpoints"] = list(features.endpoints)
        if features.idempotency_lifetime:
            answer["idempotency-key-lifetime"] = features.idempotency_lifetime
        return web.json_response(answer)

    async def _token(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        status, body = self.tokens.issue(form, request.headers.get("Authorization", ""))
        return web.json_response(body, status=status)

    # --- Namespaces ------------------------------------------------------------------------------

    async def _list_namespaces(self, request: web.Request) -> web.Response:
        parent: Namespace = ()
        if text := request.query.get("parent", ""):
            parent = self._levels(text)
            self.tables.properties(parent)
        depth = len(parent)
        below = {
            known[: depth + 1]
            for known in self.tables.namespaces
            if len(known) > depth and known[:depth] == parent
        }
        return self._page(request, "namespaces", [list(one) for one in sorted(below)])

    async def _create_namespace(self, request: web.Request) -> web.Response:
        body = await request.json()
        namespace, properties = tuple(body["namespace"]), body.get("properties") or {}
        self.tables.add_namespace(namespace, properties)
        return web.json_response({"namespace": list(namespace), "properties": properties})

    async def _namespace(self, request: web.Request) -> web.Response:
        namespace = self._namespace_of(request)
        properties = self.tables.properties(namespace)
        if request.method == "DELETE":
            self.tables.remove_namespace(namespace)
            return web.Response(status=204)
        if request.method == "HEAD":
            return web.Response(status=204)
        return web.json_response({"namespace": list(namespace), "properties": properties})

    async def _set_properties(self, request: web.Request) -> web.Response:
        properties, body = self.tables.properties(self._namespace_of(request)), await request.json()
        removals, updates = body.get("removals") or [], body.get("updates") or {}
        missing = [name for name in removals if properties.pop(name, None) is None]
        properties.update(updates)
        removed = [name for name in removals if name not in missing]
        return web.json_response({"updated": list(updates), "removed": removed, "missing": missing})

    # --- Tables ----------------------------------------------------------------------------------

    async def _list_tables(self, request: web.Request) -> web.Response:
        namespace = self._namespace_of(request)
        self.tables.properties(namespace)
        names = sorted(table.name for table in self.tables.tables if table.namespace == namespace)
        listed = [{"namespace": list(namespace), "name": name} for name in names]
        return self._page(request, "identifiers", listed)

    async def _create_table(self, request: web.Request) -> web.Response:
        body = await request.json()
        identifier = TableIdentifier(self._namespace_of(request), body["name"])
        is_staged = bool(body.get("stage-create"))
        table = await self.tables.create(identifier, body, self.clock.now_ms, staged=is_staged)
        return self._loaded(request, table, is_staged=is_staged)

    async def _register(self, request: web.Request) -> web.Response:
        body = await request.json()
        identifier = TableIdentifier(self._namespace_of(request), body["name"])
        table = await self.tables.register(identifier, body["metadata-location"])
        return self._loaded(request, table)

    async def _load(self, request: web.Request) -> web.Response:
        if request.method == "HEAD":
            self.tables.table(self._identifier_of(request))
            return web.Response(status=204)
        table = self.tables.table(self._identifier_of(request))
        etag = f'"{table.metadata_location.rpartition("/")[2]}"'
        if self.features.has_etags and request.headers.get("If-None-Match") == etag:
            return web.Response(status=304, headers={"ETag": etag})
        answer = self._loaded(request, table)
        if self.features.has_etags:
            answer.headers["ETag"] = etag
        return answer

    async def _commit(self, request: web.Request) -> web.Response:
        identifier, body = self._identifier_of(request), await request.json()
        name = {"namespace": list(identifier.namespace), "name": identifier.name}
        change = {**body, "identifier": name}
        (table,) = await self.tables.commit([change], self.clock.now_ms)
        return _json(self._described(table, is_staged=False))

    async def _commit_several(self, request: web.Request) -> web.Response:
        body = await request.json()
        await self.tables.commit(body["table-changes"], self.clock.now_ms)
        return web.Response(status=204)

    async def _drop(self, request: web.Request) -> web.Response:
        if request.query.get("purgeRequested") not in ("true", "false"):
            raise Refusal(400, "BadRequestException", "the fake wants an explicit purgeRequested")
        self.tables.drop(self._identifier_of(request))
        return web.Response(status=204)

    async def _unregister(self, request: web.Request) -> web.Response:
        table = self.tables.drop(self._identifier_of(request))
        return _json(self._described(table, is_staged=False))

    async def _rename(self, request: web.Request) -> web.Response:
        body = await request.json()
        source, to = (
            TableIdentifier(tuple(body[end]["namespace"]), body[end]["name"])
            for end in ("source", "destination")
        )
        self.tables.rename(source, to)
        return web.Response(status=204)

    # --- Answers ---------------------------------------------------------------------------------

    async def _credentials(self, request: web.Request) -> web.Response:
        self.tables.table(self._identifier_of(request))
        return web.json_response({"storage-credentials": self._vend().storage_credentials})

    def _loaded(
        self, request: web.Request, table: LoadedTable, *, is_staged: bool = False
    ) -> web.Response:
        answer = self._described(table, is_staged=is_staged)
        asked = request.headers.get("X-Iceberg-Access-Delegation", "")
        if "vended-credentials" in asked or self.features.vends_unasked:
            vended = self._vend()
            answer["config"] = dict(vended.config)
            answer["storage-credentials"] = vended.storage_credentials
        return _json(answer)

    def _vend(self) -> Vended:
        if self.features.vend is None:
            return Vended()
        self.vended += 1
        return self.features.vend(self.vended)

    def _described(self, table: LoadedTable, *, is_staged: bool) -> dict[str, Any]:
        shows = self.features.shows_metadata_location
        location = table.metadata_location if shows is True else shows or None
        return {
            "metadata-location": None if is_staged else location,
            "metadata": json.loads(print_table_metadata(table.metadata)),
            "config": {},
        }

    def _page(self, request: web.Request, key: str, listed: list[Any]) -> web.Response:
        """Return a page, where the client asks for pages or the server gives no more at once."""
        start = int(request.query.get("pageToken") or 0)
        sizes = [int(request.query.get("pageSize") or 0), self.features.page_size_max or 0]
        size = min((size for size in sizes if size), default=len(listed) or 1)
        if "pageToken" not in request.query and self.features.page_size_max is None:
            size = len(listed) or 1
        answer: dict[str, Any] = {key: listed[start : start + size]}
        if start + size < len(listed):
            answer["next-page-token"] = str(start + size)
        return web.json_response(answer)

    def _identifier_of(self, request: web.Request) -> TableIdentifier:
        return TableIdentifier(self._namespace_of(request), request.match_info["table"])

    def _namespace_of(self, request: web.Request) -> Namespace:
        return self._levels(request.match_info["namespace"])

    def _levels(self, decoded: str) -> Namespace:
        separator = self.features.separator
        if separator != USUAL_SEPARATOR and USUAL_SEPARATOR in decoded:
            raise Refusal(400, "BadRequestException", "another namespace separator is announced")
        return tuple(decoded.split(separator))


def _kind(request: web.Request) -> str:
    """Return method and the last fixed word of the path: `POST commit`, `GET tables`."""
    words = request.path.removeprefix("/v1/").removeprefix(f"{PREFIX}/").split("/")
    match words:
        case ["namespaces", _, "tables", _]:
            return f"{request.method} table"
        case ["namespaces", _]:
            return f"{request.method} namespace"
        case _:
            return f"{request.method} {words[-1]}"


def _json(answer: Mapping[str, Any]) -> web.Response:
    return web.Response(body=json.dumps(answer).encode(), content_type="application/json")


def _error(status: int, kind: str, message: str) -> web.Response:
    body = {"error": {"message": message, "type": kind, "code": status}}
    return web.json_response(body, status=status)


def _spoiled(planned: Planned) -> web.Response:
    if planned.body is not None:
        return web.Response(status=planned.status, body=planned.body)
    return _error(planned.status, planned.kind, "said by the test")
