"""Access to Azure: tokens of Entra, a SAS token, a key, and the hosts they may go to."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from committer.errors import AccessError, SettingsError, StorageUnavailableError
from committer.storage.adls.adls_authorization import SasToken, SharedKey
from committer.storage.adls.adls_location import AdlsPlaces
from committer.storage.adls.entra_tokens import EntraOptions, EntraTokens
from committer.storage.adls.open_adls import AdlsOptions, open_adls
from committer.storage.http.authorization import Token
from committer.storage.http.http_client import HttpRequest
from tests.support.clock.worlds import ManualWorld
from tests.support.storages.token_server import TokenServer, token_server

REQUEST = HttpRequest("GET", "https://storage.example/a")


@pytest.fixture
async def server() -> AsyncIterator[TokenServer]:
    async with token_server() as made:
        yield made


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


async def test_a_token_file_that_does_not_answer_is_waited_for_a_while(
    server: TokenServer, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    os.mkfifo(file)
    options = EntraOptions("tenant", "client", "", str(file), server.url)
    tokens = EntraTokens(options, ManualWorld(), file_s_max=0.1)
    with pytest.raises(StorageUnavailableError, match=str(file)):
        await tokens.fetch()
    # The thread that hangs has its answer in the end.
    await asyncio.to_thread(file.write_text, "late")


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


# --- Keys and hosts ------------------------------------------------------------------------------


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


async def test_secrets_are_in_no_text() -> None:
    options = AdlsOptions(AdlsPlaces("a"), "secret", "secret", "secret", "secret")
    signed = await SharedKey("a", "c2VjcmV0", ManualWorld()).sign(REQUEST)
    assert "secret" not in f"{options}{Token('secret', 1)}"
    assert "SharedKey" not in f"{signed}"
    assert "sig=" not in f"{await SasToken('sig=1').sign(REQUEST)}"
