"""Checks signatures of commit requests: the signer wrote the request, and may ask for it.

    [keys.spark-2026-11]
    secret = "<at least 64 hex digits>"
    tables = ["db.*"]

A signature is HMAC-SHA256 over the request's line as it stands there, without its newline, with
nothing but the signature's own text taken out (`"signature":""`). The line holds table uuid,
producer, epoch, attempt, time and the digest of every manifest, so that all of it is bound. Pure:
where keys are read, and when, is decided elsewhere.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from tomllib import TOMLDecodeError, loads
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from committer.errors import InvalidRequestError, SettingsError
from committer.reason import Reason
from committer.request.commit_request import CommitRequest
from committer.request.needs import Operation
from committer.request.request_format import EncodedRequest, InlineManifest, seal_request
from committer.request.request_model import Name, problem_text

PREFIX = "hmac-sha256:"
# Time to become durable, outages of the inbox included. A durable request never expires.
VALID_MS = 7 * 24 * 3_600_000


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A secret that signs and verifies, and what it may sign. Patterns: `*` is any text."""

    key_id: str
    secret: bytes = field(repr=False)
    tables: tuple[str, ...] = ("*",)
    producers: tuple[str, ...] = ("*",)
    operations: tuple[str, ...] = ("*",)

    def refusal(self, request: CommitRequest) -> str | None:
        """Return why this key may not sign that; None if it may."""
        wanted = (
            ("table", str(request.identifier), self.tables),
            ("producer", request.producer.id, self.producers),
            ("operation", request.operation, self.operations),
        )
        for what, value, patterns in wanted:
            if not any(fnmatchcase(value, pattern) for pattern in patterns):
                return f"key `{self.key_id}` is not for {what} `{value}`"
        return None


Keys = Mapping[str, SigningKey]


# --- The file of keys ----------------------------------------------------------------------------

_Patterns = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class _KeyModel(_Model):
    secret: Annotated[str, StringConstraints(pattern=r"^([0-9a-fA-F]{2}){32,}$")]
    tables: _Patterns = ("*",)
    producers: _Patterns = ("*",)
    operations: tuple[Literal["*", Operation], ...] = ("*",)


class _FileModel(_Model):
    keys: Annotated[dict[Name, _KeyModel], Field(min_length=1)]


def parse_keys(content: bytes, where: str) -> Keys:
    """Read the keys in the order of their file.

    Errors: `SettingsError` naming the place and what is wrong there, never a value.
    """
    try:
        document = _FileModel.model_validate(loads(content.decode()))
    except (UnicodeDecodeError, TOMLDecodeError):
        # Its own message quotes the text, which holds secrets.
        raise SettingsError(f"{where}: the file of keys is not TOML") from None
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
        place = ".".join(map(str, problems[0]["loc"]))
        raise SettingsError(f"{where}: {place}: {problem_text(problems[0])}") from None
    return {
        key_id: SigningKey(
            key_id, bytes.fromhex(key.secret), key.tables, key.producers, key.operations
        )
        for key_id, key in document.keys.items()
    }


# --- Signing -------------------------------------------------------------------------------------


def choose_key(keys: Keys, request: CommitRequest) -> SigningKey | None:
    """Return the first key of the file that may sign the request."""
    return next((key for key in keys.values() if key.refusal(request) is None), None)


def sign_request(
    request: CommitRequest, key: SigningKey, manifests: Sequence[InlineManifest] = ()
) -> EncodedRequest:
    """Seal the request with a signature of this key. Its `not_after_ms` is signed along."""
    unsigned = request.model_copy(update={"key_id": key.key_id, "signature": ""})
    sealed = seal_request(unsigned)
    signature = _sign(key, sealed.content[: sealed.body - 1])
    return seal_request(unsigned.model_copy(update={"signature": signature}), manifests)


def _sign(key: SigningKey, line: bytes) -> str:
    return PREFIX + hmac.digest(key.secret, line, "sha256").hex()


# --- Verifying -----------------------------------------------------------------------------------


def verify(sealed: EncodedRequest, keys: Keys) -> None:
    """Check that a signed request is what one of the keys has signed, and that this key may.

    Whether it was made durable in time is for the caller to find out (`not_after_ms`).
    Errors: `InvalidRequestError` with the reason.
    """
    request = sealed.request
    key = keys.get(request.key_id or "")
    if key is None:
        raise InvalidRequestError(
            Reason.SIGNATURE_KEY_UNKNOWN, f"this committer has no key `{request.key_id}`"
        )
    signature = request.signature or ""
    line = _without(signature, sealed.content[: sealed.body - 1])
    if line is None or not hmac.compare_digest(_sign(key, line).encode(), signature.encode()):
        raise InvalidRequestError(
            Reason.SIGNATURE_INVALID, f"key `{key.key_id}` has not signed this line"
        )
    refusal = key.refusal(request)
    if refusal:
        raise InvalidRequestError(Reason.SIGNATURE_KEY_NOT_ALLOWED, refusal)


def _without(signature: str, line: bytes) -> bytes | None:
    """Return the line that was signed; None if the signature does not stand in it once, as it is.

    Nothing but the value of the key `signature` can be taken out: another place that held it as
    well would be a second one, and a line with the text elsewhere does not parse to this signature.
    """
    quoted = f'"{signature}"'.encode()
    return line.replace(quoted, b'""') if line.count(quoted) == 1 else None
