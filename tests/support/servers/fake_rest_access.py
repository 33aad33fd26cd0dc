"""Who may ask the fake REST catalog, and what it vends: tokens, signatures, storage credentials.

Time is a number that the test moves, so nothing here expires by itself.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.support.servers.fake_rest_tables import Refusal

_SIGNED = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/]+)/(?P<day>\d{8})/(?P<region>[^/]+)/(?P<name>[^/]+)"
    r"/aws4_request, ?SignedHeaders=(?P<headers>[^,]+), ?Signature=(?P<signature>[0-9a-f]{64})"
)


@dataclass(slots=True)
class FakeClock:
    """The server's time."""

    now_ms: int = 1_800_000_000_000

    def advance(self, seconds: float) -> None:
        self.now_ms += int(seconds * 1000)


@dataclass(slots=True)
class TokenIssuer:
    """The OAuth2 token endpoint, and the check of what it has issued. Without `credential` every
    request is let in.
    """

    clock: FakeClock
    credential: str = ""
    """`id:secret`, of the one client that gets tokens."""
    lifetime_s: int = 3600
    says_lifetime: bool = True
    """Whether answers have `expires_in`."""
    expired_status: int = 401
    """To a token that was issued and is over: 401, or 419 of servers that tell these apart."""
    fixed: set[str] = field(default_factory=set)
    """Tokens that are good for ever."""
    issued: dict[str, int] = field(default_factory=dict)
    """End of each token that was issued, in ms, in their order."""
    requests: list[dict[str, str]] = field(default_factory=list)
    """The form of each request for a token."""
    refused: int = 0
    """How many requests had no token that is good."""

    def issue(self, form: Mapping[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        """Return the status and the body of the token endpoint's answer."""
        self.requests.append(dict(form))
        if form.get("grant_type") != "client_credentials":
            return 400, {"error": "unsupported_grant_type"}
        if _client_of(form, authorization) != self.credential:
            return 401, {"error": "invalid_client", "error_description": "unknown client"}
        token = f"token-{len(self.issued) + 1}"
        self.issued[token] = self.clock.now_ms + self.lifetime_s * 1000
        answer: dict[str, Any] = {"access_token": token, "token_type": "bearer"}
        if self.says_lifetime:
            answer["expires_in"] = self.lifetime_s
        return 200, answer

    def revoke_all(self) -> None:
        """End every token now, before the end that was announced."""
        self.issued = dict.fromkeys(self.issued, 0)

    def check(self, authorization: str) -> None:
        if not self.credential and not self.fixed:
            return
        kind, _, token = authorization.partition(" ")
        if kind.lower() == "bearer":
            if token in self.fixed or self.issued.get(token, 0) > self.clock.now_ms:
                return
            if token in self.issued:
                self.refused += 1
                raise Refusal(self.expired_status, "AuthenticationTimeoutException", "expired")
        self.refused += 1
        raise Refusal(401, "NotAuthorizedException", "Not authorized")


def _client_of(form: Mapping[str, str], authorization: str) -> str:
    """Return `id:secret` as the form or the header names it."""
    kind, _, encoded = authorization.partition(" ")
    if kind.lower() == "basic":
        return base64.b64decode(encoded).decode()
    return f"{form.get('client_id', '')}:{form.get('client_secret', '')}"


@dataclass(frozen=True, slots=True)
class SigV4Check:
    """Checks signatures as AWS does: computes them again from the request that came in."""

    access_key_id: str
    secret_access_key: str
    region: str
    name: str

    def check(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> None:
        found = _SIGNED.fullmatch(headers.get("Authorization", ""))
        if found is None:
            raise Refusal(403, "MissingAuthenticationToken", "the request is not signed")
        if (found["key"], found["region"], found["name"]) != (
            self.access_key_id,
            self.region,
            self.name,
        ):
            raise Refusal(403, "InvalidSignatureException", "another key, region or signing name")
        content = hashlib.sha256(body).hexdigest()
        if headers.get("x-amz-content-sha256", content) != content:
            raise Refusal(403, "InvalidSignatureException", "the body has another hash")
        signed = {name: headers[name] for name in found["headers"].split(";") if name != "host"}
        again = AWSRequest(method=method, url=url, data=body, headers=signed)
        again.context["timestamp"] = headers["x-amz-date"]
        signer: Any = SigV4Auth(
            Credentials(self.access_key_id, self.secret_access_key), self.name, self.region
        )
        text = signer.string_to_sign(again, signer.canonical_request(again))
        if signer.signature(text, again) != found["signature"]:
            raise Refusal(403, "SignatureDoesNotMatch", "the signature is another one")


# --- Vended credentials --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Vended:
    """One answer's credentials: by prefix, and those in `config`, which are for the whole table."""

    by_prefix: tuple[tuple[str, Mapping[str, str]], ...] = ()
    config: Mapping[str, str] = field(default_factory=dict)

    @property
    def storage_credentials(self) -> list[dict[str, Any]]:
        return [{"prefix": prefix, "config": dict(config)} for prefix, config in self.by_prefix]


def s3_keys(
    key: str, secret: str, token: str = "", *, expires_ms: int | None = None
) -> dict[str, str]:
    keys = {"s3.access-key-id": key, "s3.secret-access-key": secret}
    if token:
        keys["s3.session-token"] = token
    if expires_ms is not None:
        keys["s3.session-token-expires-at-ms"] = str(expires_ms)
    return keys


def gcs_keys(token: str, *, expires_ms: int | None = None) -> dict[str, str]:
    keys = {"gcs.oauth2.token": token}
    return keys if expires_ms is None else {**keys, "gcs.oauth2.token-expires-at": str(expires_ms)}


def adls_keys(host: str, token: str, *, expires_ms: int | None = None) -> dict[str, str]:
    keys = {f"adls.sas-token.{host}": token}
    if expires_ms is None:
        return keys
    return {**keys, f"adls.sas-token-expires-at-ms.{host}": str(expires_ms)}


REMOTE_SIGNING = {"s3.remote-signing-enabled": "true", "s3.signer.uri": "https://signer.invalid"}
"""What a server says that signs each request to S3 itself."""
