"""Tokens for object stores: where they come from, when they are renewed, what is refused.

A small server stands in for Google's and Microsoft's, of which none can be had here.
"""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from committer.errors import AccessError, SettingsError, StorageUnavailableError
from committer.storage.adls.adls_authorization import SasToken, SharedKey
from committer.storage.adls.adls_location import AdlsPlaces
from committer.storage.adls.entra_tokens import EntraOptions, EntraTokens
from committer.storage.adls.open_adls import AdlsOptions, open_adls
from committer.storage.gcs.google_tokens import GoogleTokens
from committer.storage.gcs.open_gcs import GcsOptions, open_gcs
from committer.storage.http.authorization import RenewedToken, StaticToken, Token
from committer.storage.http.http_client import HttpRequest
from tests.support.clock.worlds import ManualWorld

REQUEST = HttpRequest("GET", "https://storage.example/a")
ROUTES = ("/token", "/tenant/oauth2/v2.0/token")


@dataclass
class TokenServer:
    """Answers with `answers`, the last one for ever; keeps what it was asked."""

    url: str
    answers: list[tuple[int, dict[str, object]]] = field(default_factory=list)
    forms: list[Mapping[str, str]] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.Response:
        self.forms.append({name: str(text) for name, text in (await request.post()).items()})
        status, body = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return web.json_response(body, status=status)


@pytest.fixture
async def server() -> AsyncIterator[TokenServer]:
    made = TokenServer("")
    app = web.Application()
    for route in ROUTES:
        app.router.add_post(route, made.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield made
    await runner.cleanup()


def bearer_of(request: HttpRequest) -> str:
    return request.headers["Authorization"].removeprefix("Bearer ")


# --- Renewal -------------------------------------------------------------------------------------


class Fetches:
    """Tokens that end in an hour, or an error."""

    def __init__(self, world: ManualWorld) -> None:
        self.count = 0
        self.fails: Exception | None = None
        self._world = world

    async def __call__(self) -> Token:
        self.count += 1
        if self.fails is not None:
            raise self.fails
        return Token(f"token-{self.count}", self._world.now_ms() + 3_600_000)


async def test_a_token_is_fetched_once_and_again_before_it_ends() -> None:
    world = ManualWorld()
    fetches = Fetches(world)
    renewed = RenewedToken(fetches, world)
    for _ in range(3):
        assert bearer_of(await renewed.sign(REQUEST)) == "token-1"
    world.advance(3_299)
    assert bearer_of(await renewed.sign(REQUEST)) == "token-1"
    world.advance(2)
    assert bearer_of(await renewed.sign(REQUEST)) == "token-2"
    refused = await renewed.sign(REQUEST)
    for _ in range(3):  # of many calls at one time that it was refused to
        assert renewed.forget(refused)
        assert bearer_of(await renewed.sign(REQUEST)) == "token-3"


async def test_a_token_is_used_to_its_end_while_no_other_can_be_had() -> None:
    world = ManualWorld()
    fetches = Fetches(world)
    renewed = RenewedToken(fetches, world)
    await renewed.sign(REQUEST)
    fetches.fails = StorageUnavailableError("no answer")
    world.advance(3_500)
    assert bearer_of(await renewed.sign(REQUEST)) == "token-1"
    world.advance(101)
    with pytest.raises(StorageUnavailableError, match="no answer"):
        await renewed.sign(REQUEST)


async def test_a_given_token_that_has_ended_is_not_sent() -> None:
    world = ManualWorld()
    given = StaticToken(Token("secret", world.now_ms() + 1_000), "gcs.oauth2.token", world)
    assert bearer_of(await given.sign(REQUEST)) == "secret"
    assert not given.forget(REQUEST)
    world.advance(1)
    with pytest.raises(AccessError, match=r"`gcs\.oauth2\.token` has expired"):
        await given.sign(REQUEST)


# --- Google --------------------------------------------------------------------------------------


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


# --- Microsoft -----------------------------------------------------------------------------------


async def test_a_service_principal_gets_a_token_by_its_secret(server: TokenServer) -> None:
    world = ManualWorld()
    options = EntraOptions("tenant", "client", "secret", authority_url=server.url)
    server.answers = [(200, {"access_token": "from entra", "expires_in": 3_599})]
    token = await EntraTokens(options, world).fetch()
    assert token == Token("from entra", world.now_ms() + 3_599_000)
    assert server.forms == [
        {
            "grant_type": "client_credentials",
            "client_id": "client",
            "client_secret": "secret",
            "scope": "https://storage.azure.com/.default",
        }
    ]


async def test_a_workload_shows_the_token_of_its_pod_as_it_is_now(
    server: TokenServer, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    options = EntraOptions("tenant", "client", "", str(file), server.url)
    tokens = EntraTokens(options, ManualWorld())
    with pytest.raises(AccessError, match="AZURE_FEDERATED_TOKEN_FILE"):
        await tokens.fetch()
    server.answers = [(200, {"access_token": "x", "expires_in": "10"})]
    for text in ("first", "second"):
        file.write_text(f"{text}\n")
        await tokens.fetch()
    assert [form["client_assertion"] for form in server.forms] == ["first", "second"]


@pytest.mark.parametrize(
    ("answer", "expected", "message"),
    [
        ((401, {"error": "invalid_client"}), AccessError, "invalid_client"),
        ((200, {"hello": 1}), AccessError, "no reason"),
        ((500, {}), StorageUnavailableError, "500"),
        ((429, {}), StorageUnavailableError, "429"),
    ],
)
async def test_a_refusal_of_microsoft_is_told_from_an_outage(
    server: TokenServer,
    answer: tuple[int, dict[str, object]],
    expected: type[Exception],
    message: str,
) -> None:
    server.answers = [answer]
    options = EntraOptions("tenant", "client", "secret", authority_url=server.url)
    with pytest.raises(expected, match=message) as caught:
        await EntraTokens(options, ManualWorld()).fetch()
    assert "secret" not in str(caught.value)


# --- Azure's own ---------------------------------------------------------------------------------


async def test_a_sas_token_is_appended_to_the_query() -> None:
    sas = SasToken("?sv=1&sig=a%2Bb")
    assert (await sas.sign(REQUEST)).url == "https://storage.example/a?sv=1&sig=a%2Bb"
    paged = HttpRequest("GET", "https://storage.example/a?comp=list")
    assert (await sas.sign(paged)).url == "https://storage.example/a?comp=list&sv=1&sig=a%2Bb"


BAD: list[tuple[Callable[[], object], str]] = [
    (lambda: AdlsOptions(account_key="x"), "needs `adls.account-name`"),
    (lambda: AdlsOptions(sas_token="x"), "needs `adls.account-name`"),
    (lambda: AdlsOptions(AdlsPlaces("a"), account_key="no base64!"), "expected the base64"),
    (lambda: AdlsOptions(connection_string="AccountName=a"), "expected AccountName=…;AccountKey=…"),
    (lambda: AdlsOptions(entra=EntraOptions("tenant", "client")), "one of them is missing"),
]


@pytest.mark.parametrize(("make", "message"), BAD)
def test_half_of_the_credentials_for_azure_is_refused(
    make: Callable[[], AdlsOptions], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        open_adls(make(), world=ManualWorld())


@pytest.mark.parametrize(
    ("places", "bucket", "url"),
    [
        (AdlsPlaces(), "c@a.dfs.core.windows.net", "https://a.blob.core.windows.net/c"),
        (AdlsPlaces(), "c@a.blob.core.windows.net", "https://a.blob.core.windows.net/c"),
        (
            AdlsPlaces(),
            "c@a.dfs.core.chinacloudapi.cn",
            "https://a.blob.core.chinacloudapi.cn/c",
        ),
        (AdlsPlaces("a"), "c", "https://a.blob.core.windows.net/c"),
        (AdlsPlaces("a", "127.0.0.1:10000", "http"), "c", "http://127.0.0.1:10000/a/c"),
        (AdlsPlaces("a", ".blob.example"), "c@a.dfs.example", "https://a.blob.example/c"),
    ],
)
def test_a_location_on_azure_is_reached_at_its_blob_endpoint(
    places: AdlsPlaces, bucket: str, url: str
) -> None:
    assert places.blob_url(bucket) == url


@pytest.mark.parametrize(
    ("bucket", "message"),
    [
        ("c", "names no account"),
        ("c@a.dfs.evil.example", "expected account.dfs.core.windows.net"),
        ("c@evil.example", "expected account.dfs.core.windows.net"),
    ],
)
def test_no_token_goes_to_a_host_that_is_not_azures(bucket: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        AdlsPlaces().blob_url(bucket)


def test_the_credentials_of_one_account_are_not_shown_to_another() -> None:
    with pytest.raises(SettingsError, match="credentials are of the account `a`"):
        AdlsPlaces("a").blob_url("c@b.dfs.core.windows.net")


async def test_secrets_are_in_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    options = AdlsOptions(AdlsPlaces("a"), "secret", "secret", "secret", "secret")
    signed = await SharedKey("a", "c2VjcmV0", ManualWorld()).sign(REQUEST)
    assert "secret" not in f"{options}{GcsOptions(token='secret')}{Token('secret', 1)}"
    assert "SharedKey" not in f"{signed}"
    assert "sig=" not in f"{await SasToken('sig=1').sign(REQUEST)}"
