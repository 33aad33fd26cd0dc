"""Tokens of Microsoft Entra: of a service principal by its secret, of a workload by the token of
its pod, and of a machine's managed identity.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlencode

import orjson

from committer import place_threads
from committer.errors import AccessError, StorageUnavailableError
from committer.ports.world import World
from committer.storage.http.authorization import Token
from committer.storage.http.http_client import (
    HttpAnswer,
    HttpClient,
    HttpLimits,
    HttpRequest,
    NoAnswerError,
)

_SCOPE = "https://storage.azure.com/.default"
_MACHINE = "http://169.254.169.254/metadata/identity/oauth2/token"
# How long the pod's token file, which may be on a mount, may take to be read.
FILE_S_MAX = 20.0
_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


@dataclass(frozen=True, slots=True)
class EntraOptions:
    """The principal that asks for a token. Without a tenant it is the managed identity of this
    machine, of which `client_id` chooses one."""

    tenant_id: str = ""
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    token_file: str = ""
    """The pod's token, which Kubernetes renews in place; where there is no secret."""
    authority_url: str = "https://login.microsoftonline.com"


class EntraTokens:
    """Fetches tokens for Azure's storage."""

    def __init__(
        self, options: EntraOptions, world: World, *, file_s_max: float = FILE_S_MAX
    ) -> None:
        self._options = options
        self._world = world
        self._files = place_threads.PlaceThreads(
            "the token file of Microsoft Entra", threads_max=1, answer_s=file_s_max
        )

    async def fetch(self) -> Token:
        """Fetch a token. Errors: `AccessError`; `StorageUnavailableError` without an answer."""
        client = HttpClient(HttpLimits())
        try:
            answer = await client.send(await self._request())
        except NoAnswerError as error:
            raise StorageUnavailableError(f"no token of Microsoft Entra: {error}") from error
        finally:
            await client.close()
        return self._token(answer)

    async def _request(self) -> HttpRequest:
        options = self._options
        if not options.tenant_id:
            query = {"api-version": "2018-02-01", "resource": "https://storage.azure.com/"}
            if options.client_id:
                query["client_id"] = options.client_id
            url = f"{_MACHINE}?{urlencode(query, quote_via=quote)}"
            return HttpRequest("GET", url, {"Metadata": "true"})
        form = {
            "grant_type": "client_credentials",
            "client_id": options.client_id,
            "scope": _SCOPE,
            **await self._proof(),
        }
        return HttpRequest(
            "POST",
            f"{options.authority_url.rstrip('/')}/{quote(options.tenant_id)}/oauth2/v2.0/token",
            {"Content-Type": "application/x-www-form-urlencoded"},
            urlencode(form).encode(),
        )

    async def _proof(self) -> dict[str, str]:
        options = self._options
        if options.client_secret:
            return {"client_secret": options.client_secret}
        try:
            assertion = await self._files.run(
                options.token_file, Path(options.token_file).read_text
            )
        except place_threads.NoAnswerError as error:
            raise StorageUnavailableError(f"no token of Microsoft Entra: {error}") from error
        except OSError as error:
            raise AccessError(
                f"no token of Microsoft Entra: `{options.token_file}`"
                f" (AZURE_FEDERATED_TOKEN_FILE): {error.strerror}"
            ) from error
        return {"client_assertion_type": _ASSERTION, "client_assertion": assertion.strip()}

    def _token(self, answer: HttpAnswer) -> Token:
        if answer.status == 429 or answer.status >= 500:
            raise StorageUnavailableError(f"no token of Microsoft Entra: {answer.status}")
        try:
            found = orjson.loads(answer.body)
            if answer.status == 200:
                ends_ms = self._world.now_ms() + int(found["expires_in"]) * 1000
                return Token(str(found["access_token"]), ends_ms)
            reason = f"{found['error']}: {found.get('error_description', '')[:200]}"
        except (ValueError, KeyError, TypeError, AttributeError):
            reason = f"{answer.status}, and no reason"
        raise AccessError(f"Microsoft Entra gives no token: {reason}")
