"""Sends authorized requests to one object store, again where that may help."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from committer.ports.world import World
from committer.storage.http.authorization import Authorization
from committer.storage.http.http_client import (
    HTTP_ERRORS,
    HttpAnswer,
    HttpClient,
    HttpLimits,
    HttpRequest,
    RefusalError,
)
from committer.storage.repeated_calls import Backend, CallLimits, Failure, RepeatedCalls, Tries

T = TypeVar("T")


class HttpCalls:
    """Requests to one store. `refusal` makes the error of an answer, `judge` judges it."""

    def __init__(
        self,
        authorization: Authorization,
        world: World,
        limits: CallLimits,
        http_limits: HttpLimits,
        *,
        refusal: Callable[[HttpAnswer], RefusalError],
        judge: Callable[[Exception], Failure],
    ) -> None:
        self.limits = limits
        self.at_once_max = http_limits.connections_max
        self._authorization = authorization
        self._refusal = refusal

        async def open_client() -> HttpClient:
            return HttpClient(http_limits)

        backend = Backend(
            open_client, HttpClient.close, HTTP_ERRORS, judge, http_limits.connections_max
        )
        self._calls = RepeatedCalls(backend, world, limits)

    async def send(
        self,
        request: HttpRequest,
        read: Callable[[HttpAnswer], Awaitable[T]],
        tries: Tries | None = None,
    ) -> T:
        """Send a request and read its answer, again while that may help. `read` raises
        `NoAnswerError` for an answer that the store cannot have given.

        Errors: the last one of `HTTP_ERRORS`; those of the authorization.
        """

        async def call(client: HttpClient) -> T:
            return await read(await self._send(client, request))

        return await self._calls.send(call, tries)

    async def close(self) -> None:
        await self._calls.close()

    async def _send(self, client: HttpClient, request: HttpRequest) -> HttpAnswer:
        signed = await self._authorization.sign(request)
        answer = await client.send(signed)
        if answer.status == 401 and self._authorization.forget(signed):
            # Nothing was applied: the token had been revoked, or ended early.
            answer = await client.send(await self._authorization.sign(request))
        if answer.status >= 300:
            raise self._refusal(answer)
        return answer
