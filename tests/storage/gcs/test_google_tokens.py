"""Tokens of Google: where they come from, what is refused."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from committer.errors import AccessError, StorageUnavailableError
from committer.storage.gcs.google_tokens import GoogleTokens
from committer.storage.gcs.open_gcs import GcsOptions, open_gcs
from tests.support.clock.worlds import ManualWorld
from tests.support.storages.token_server import TokenServer, token_server


@pytest.fixture
async def server() -> AsyncIterator[TokenServer]:
    async with token_server() as made:
        yield made


def key_file(folder: Path, token_url: str) -> tuple[Path, rsa.RSAPublicKey]:
    key = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
    text = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
    path = folder / "key.json"
    described = {
        "type": "service_account",
        "project_id": "frazil",
        "private_key_id": "1",
        "private_key": text,
        "client_email": "committer@frazil.example",
        "token_uri": token_url,
    }
    path.write_text(json.dumps(described))
    return path, key.public_key()


async def test_a_key_file_of_google_gives_a_token(
    server: TokenServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, public = key_file(tmp_path, f"{server.url}/token")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
    server.answers = [(200, {"access_token": "from google", "expires_in": 3_600})]
    token = await GoogleTokens().fetch()
    assert token.text == "from google"
    assert token.ends_ms is not None
    assertion = server.forms[0]["assertion"]
    signed, _, signature = assertion.rpartition(".")
    public.verify(decoded(signature), signed.encode(), padding.PKCS1v15(), hashes.SHA256())
    claims = json.loads(decoded(signed.partition(".")[2]))
    assert claims["iss"] == "committer@frazil.example"
    assert claims["scope"] == "https://www.googleapis.com/auth/devstorage.read_write"


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ((400, {"error": "invalid_grant", "error_description": "no such account"}), AccessError),
        ((503, {"error": "try later"}), StorageUnavailableError),
    ],
)
async def test_a_refusal_of_google_is_told_from_an_outage(
    server: TokenServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    answer: tuple[int, dict[str, object]],
    expected: type[Exception],
) -> None:
    path, _ = key_file(tmp_path, f"{server.url}/token")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
    monkeypatch.setattr("time.sleep", lambda _: None)
    server.answers = [answer]
    with pytest.raises(expected):
        await GoogleTokens().fetch()


async def test_google_without_credentials_names_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "absent.json"))
    storage = open_gcs(GcsOptions(), world=ManualWorld())
    with pytest.raises(AccessError, match=r"GOOGLE_APPLICATION_CREDENTIALS or `gcs\.oauth2\.token"):
        await storage.get("gs://bucket/a")
    await storage.close()


def test_a_token_of_google_is_in_no_text() -> None:
    assert "secret" not in f"{GcsOptions(token='secret')}"
