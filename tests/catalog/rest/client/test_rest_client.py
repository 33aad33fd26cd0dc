"""The client of a REST catalog: configuration, tokens, and requests that are sent once."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from committer.backends.catalog_kinds import open_catalog
from committer.catalog.catalog_properties import CatalogProperties
from committer.catalog.rest.client.rest_answer import LostAnswerError
from committer.catalog.rest.client.rest_client import RestClient
from committer.catalog.rest.client.rest_options import (
    BasicOptions,
    OAuth2Options,
    RestOptions,
    TlsOptions,
)
from committer.catalog.rest.client.rest_paths import DEFAULT_ENDPOINTS, REGISTER, Paths
from committer.catalog.rest.rest_properties import AuthType, auth_type
from committer.errors import AccessError, CatalogUnavailableError, SettingsError
from committer.ports.world import World
from committer.real_world import RealWorld
from committer.request.table_identifier import TableIdentifier
from tests.support.memory.memory_storage import MemoryStorage
from tests.support.servers.fake_rest import FakeRest
from tests.support.servers.fake_rest_access import SigV4Check
from tests.support.servers.fake_rest_features import Planned
from tests.support.servers.http_proxy import Answer as Said
from tests.support.servers.http_proxy import Fault, HttpProxy

CREDENTIAL = OAuth2Options(credential="robot:s3cr3t")


class MovedWorld(RealWorld):
    """The real world, whose clocks a test moves on."""

    def __init__(self) -> None:
        self.moved_s = 0.0

    def now_ms(self) -> int:
        return super().now_ms() + int(self.moved_s * 1000)

    def monotonic_s(self) -> float:
        return super().monotonic_s() + self.moved_s


@pytest.fixture
async def fake() -> AsyncIterator[FakeRest]:
    async with FakeRest(MemoryStorage(world=RealWorld()), warehouse="memory://warehouse") as server:
        yield server


@asynccontextmanager
async def opened(
    uri: str,
    *,
    world: World | None = None,
    auth: OAuth2Options | BasicOptions | None = None,
    **options: object,
) -> AsyncIterator[RestClient]:
    client = await RestClient.open(
        RestOptions(uri=uri, **options),  # type: ignore[arg-type]  # the test names what exists
        world=world or RealWorld(),
        auth=auth,
    )
    try:
        yield client
    finally:
        await client.close()


# --- Configuration -------------------------------------------------------------------------------


async def test_what_the_server_overrides_wins_and_its_defaults_lose(fake: FakeRest) -> None:
    fake.features.defaults |= {"header.X-One": "server", "header.X-Two": "server", "a": "1"}
    fake.features.overrides |= {"header.X-Three": "server"}
    headers = {"X-One": "ours", "X-Three": "ours"}
    async with opened(fake.url, headers=headers) as client:
        assert client.paths.prefix == "fake"
        await client.read(client.paths.namespaces())
        assert client.properties["a"] == "1"
    sent = fake.headers[-1]
    assert (sent["X-One"], sent["X-Two"], sent["X-Three"]) == ("ours", "server", "server")


async def test_endpoints_that_are_not_advertised_are_those_that_the_protocol_began_with(
    fake: FakeRest,
) -> None:
    async with opened(fake.url) as client:
        assert client.paths.endpoints == DEFAULT_ENDPOINTS
    assert len(DEFAULT_ENDPOINTS) == 14
    fake.features.endpoints = ("GET /v1/{prefix}/namespaces",)
    async with opened(fake.url) as client:
        assert not client.paths.offers(REGISTER)


@pytest.mark.parametrize("separator", ["%1F", "%2E", "~"])
def test_levels_are_quoted_and_then_joined_by_what_the_server_advertises(separator: str) -> None:
    paths = Paths("a/b c", separator)
    table = TableIdentifier(("x/y", "z.é"), "t?")
    quoted = f"x%2Fy{separator}z.%C3%A9"
    assert paths.table(table) == f"v1/a/b%20c/namespaces/{quoted}/tables/t%3F"


@pytest.mark.parametrize(
    ("answer", "setting"),
    [
        (Said(404, b"<html>nothing here</html>", "text/html"), "`uri`"),
        (Said(301, b"", "text/html", (("Location", "http://elsewhere"),)), "`uri`"),
        (
            Said(400, b'{"error":{"message":"no such","type":"BadRequestException","code":400}}'),
            "`warehouse` sales",
        ),
    ],
)
async def test_a_wrong_address_or_warehouse_is_named_by_its_setting(
    fake: FakeRest, answer: Said, setting: str
) -> None:
    async with HttpProxy(fake.url) as proxy:
        proxy.plan(b"/v1/config", answer)
        with pytest.raises(SettingsError, match=setting):
            async with opened(proxy.url, warehouse="sales"):
                pass


@pytest.mark.parametrize("uri", ["ftp://x", "http://", "http://user:secret@x", "http://[", "x"])
async def test_an_address_that_is_none_is_refused_without_its_secrets(uri: str) -> None:
    with pytest.raises(SettingsError, match="`uri`") as error:
        async with opened(uri):
            pass
    assert "secret" not in str(error.value)


async def test_a_certificate_file_that_is_none_is_named_with_its_property() -> None:
    for tls, name in (
        (TlsOptions(ca_bundle="/nowhere"), "ssl.cabundle"),
        (TlsOptions(client_certificate="/nowhere"), "ssl.client.cert"),
    ):
        with pytest.raises(SettingsError, match=name):
            async with opened("https://127.0.0.1:1", tls=tls):
                pass


async def test_a_header_that_would_begin_another_one_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"`header\.X-A`"):
        async with opened("http://127.0.0.1:1", headers={"X-A": "1\r\nX-B: 2"}):
            pass


# --- Who may ask ---------------------------------------------------------------------------------


async def test_a_token_is_fetched_once_and_renewed_before_it_ends(fake: FakeRest) -> None:
    fake.tokens.credential, fake.tokens.lifetime_s = "robot:s3cr3t", 1000
    world = MovedWorld()
    async with opened(fake.url, auth=CREDENTIAL, world=world) as client:
        for moved_s, fetched in ((0.0, 1), (890.0, 1), (20.0, 2)):
            world.moved_s += moved_s
            fake.clock.advance(moved_s)
            assert (await client.read(client.paths.namespaces())).is_success
            assert len(fake.tokens.requests) == fetched
    assert fake.tokens.refused == 0


@pytest.mark.parametrize("status", [401, 419])
async def test_a_token_that_is_refused_is_renewed_and_the_request_sent_once_more(
    fake: FakeRest, status: int
) -> None:
    fake.tokens.credential, fake.tokens.expired_status = "robot:s3cr3t", status
    async with opened(fake.url, auth=CREDENTIAL) as client:
        fake.clock.advance(4000.0)
        assert (await client.read(client.paths.namespaces())).is_success
    assert (fake.tokens.refused, len(fake.tokens.requests)) == (1, 2)


async def test_a_renewal_that_fails_early_is_no_error_while_the_token_is_good(
    fake: FakeRest,
) -> None:
    fake.tokens.credential, fake.tokens.lifetime_s = "robot:s3cr3t", 1000
    world = MovedWorld()
    async with (
        HttpProxy(fake.url) as proxy,
        opened(proxy.url, auth=CREDENTIAL, world=world) as client,
    ):
        proxy.plan(b"/oauth/tokens", Said(503))
        world.moved_s = 950.0
        assert (await client.read(client.paths.namespaces())).is_success
        world.moved_s = 1001.0
        proxy.plan(b"/oauth/tokens", Said(503))
        with pytest.raises(CatalogUnavailableError, match="no token"):
            await client.read(client.paths.namespaces())


async def test_a_wrong_credential_is_an_access_error_that_does_not_show_it(fake: FakeRest) -> None:
    fake.tokens.credential = "robot:other"
    with pytest.raises(AccessError, match="`credential`") as error:
        async with opened(fake.url, auth=CREDENTIAL):
            pass
    assert "s3cr3t" not in str(error.value)


async def test_a_fixed_token_is_sent_and_a_refused_one_is_not_sent_again(fake: FakeRest) -> None:
    fake.tokens.credential = "robot:s3cr3t"
    fake.tokens.fixed.add("good")
    async with opened(fake.url, auth=OAuth2Options(token="good")) as client:
        assert (await client.read(client.paths.namespaces())).is_success
    sent = len(fake.headers)
    with pytest.raises(AccessError, match="`token`") as error:
        async with opened(fake.url, auth=OAuth2Options(token="b4d")):
            pass
    assert len(fake.headers) == sent + 1
    assert "b4d" not in str(error.value)


async def test_a_fixed_token_is_replaced_by_the_credential_before_its_claimed_end(
    fake: FakeRest,
) -> None:
    world = MovedWorld()
    claims = base64.urlsafe_b64encode(json.dumps({"exp": world.now_ms() / 1000 + 500}).encode())
    token = f"e30.{claims.decode().rstrip('=')}.x"
    fake.tokens.credential = "robot:s3cr3t"
    fake.tokens.fixed.add(token)
    auth = OAuth2Options(token=token, credential="robot:s3cr3t")
    async with opened(fake.url, auth=auth, world=world) as client:
        assert fake.tokens.requests == []
        world.moved_s = 460.0
        assert (await client.read(client.paths.namespaces())).is_success
    assert len(fake.tokens.requests) == 1


async def test_a_user_name_and_a_password_are_sent_with_each_request(fake: FakeRest) -> None:
    async with opened(fake.url, auth=BasicOptions(username="ada", password="x:y")):
        pass
    expected = base64.b64encode(b"ada:x:y").decode()
    assert fake.headers[-1]["Authorization"] == f"Basic {expected}"


# --- Sending -------------------------------------------------------------------------------------


async def test_a_connection_that_is_refused_was_sent_nothing() -> None:
    with pytest.raises(CatalogUnavailableError, match="no connection"):
        async with opened("http://127.0.0.1:1"):
            pass


@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_a_change_whose_answer_is_lost_is_not_sent_again(fake: FakeRest, method: str) -> None:
    async with HttpProxy(fake.url) as proxy, opened(proxy.url) as client:
        path = client.paths.namespace(("db",))
        await client.read(client.paths.namespaces())  # a connection that is kept alive
        proxy.requests.clear()
        proxy.plan(b"/namespaces/db", Fault.CUT_REQUEST)
        with pytest.raises(LostAnswerError):
            await client.send(method, path, {})
        assert len(proxy.requests) == 1


async def test_an_answer_that_does_not_come_is_lost_in_the_end(fake: FakeRest) -> None:
    async with (
        HttpProxy(fake.url) as proxy,
        opened(proxy.url, read_timeout_s=0.2) as client,
    ):
        proxy.plan(b"/namespaces", Fault.HOLD_ANSWER)
        with pytest.raises(LostAnswerError, match="Timeout"):
            await client.send("POST", client.paths.namespaces(), {"namespace": ["a"]})


async def test_changes_have_a_fresh_key_each_where_the_server_announces_keys(
    fake: FakeRest,
) -> None:
    for lifetime in ("", "PT5M"):
        fake.features.idempotency_lifetime = lifetime
        async with opened(fake.url) as client:
            for name in ("a", "b"):
                body = {"namespace": [name + lifetime]}
                await client.send("POST", client.paths.namespaces(), body)
            await client.read(client.paths.namespaces())
        keys = [sent.get("Idempotency-Key") for sent in fake.headers[-3:]]
        if not lifetime:
            assert keys == [None, None, None]
    assert keys[2] is None
    assert len({*keys}) == 3
    for key in keys[:2]:
        assert key is not None
        assert (len(key), key[14], key[19] in "89ab") == (36, "7", True)


async def test_lists_are_read_page_by_page(fake: FakeRest) -> None:
    fake.features.page_size_max = 2
    async with opened(fake.url, page_size=3) as client:
        for number in range(5):
            await client.send("POST", client.paths.namespaces(), {"namespace": [f"n{number}"]})
        pages = [
            page.json()["namespaces"] async for page in client.pages(client.paths.namespaces())
        ]
    assert sorted(name for page in pages for (name,) in page) == [f"n{one}" for one in range(5)]
    assert len(pages) == 3


async def test_an_error_names_the_address_and_the_code_and_fits_a_line(fake: FakeRest) -> None:
    fake.plan(Planned("GET", "/namespaces", status=403, kind="ForbiddenException"))
    async with opened(fake.url) as client:
        answer = await client.read(client.paths.namespaces())
    error = answer.as_error()
    assert isinstance(error, AccessError)
    assert f"GET {fake.url}/v1/fake/namespaces: HTTP 403 ForbiddenException" in str(error)


# --- From properties -----------------------------------------------------------------------------


def catalog_of(**values: str) -> CatalogProperties:
    named = {name.replace("__", "."): text for name, text in values.items()}
    return CatalogProperties("prod", {key.replace("_", "-"): text for key, text in named.items()})


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({}, AuthType.NONE),
        ({"token": "t"}, AuthType.OAUTH2),
        ({"credential": "a:b"}, AuthType.OAUTH2),
        ({"rest__sigv4_enabled": "true"}, AuthType.SIGV4),
        ({"rest__auth__type": "sigv4"}, AuthType.SIGV4),
        ({"auth__type": "noop", "token": "t"}, AuthType.NONE),
        ({"rest__auth__type": "Basic"}, AuthType.BASIC),
    ],
)
def test_how_a_client_proves_itself_is_read_as_other_clients_read_it(
    values: dict[str, str], found: AuthType
) -> None:
    assert auth_type(catalog_of(**values)) is found


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"rest__auth__type": "google"}, "`rest.auth.type` google"),
        ({"rest__auth__type": "oauth2"}, "`credential`"),
        ({"rest__auth__type": "basic"}, "`rest.auth.basic.username`"),
        ({"ssl__client__key": "k.pem"}, "`ssl.client.cert`"),
        ({"token": "s3cr3t\r\nX-Other: 1"}, "`token`: expected printable"),
        (
            {"rest__auth__type": "basic", "rest__auth__basic__username": "a:b"},
            "`rest.auth.basic.username`: expected no `:`",
        ),
    ],
)
async def test_half_of_a_configuration_is_named_by_its_property(
    values: dict[str, str], said: str
) -> None:
    properties = catalog_of(uri="http://127.0.0.1:1", **values)
    storage = MemoryStorage(world=RealWorld())
    with pytest.raises(SettingsError, match=said) as error:
        await open_catalog(properties, storage, RealWorld(), create=False)
    assert "s3cr3t" not in str(error.value)


async def test_a_request_is_signed_as_aws_wants_it(fake: FakeRest) -> None:
    fake.features.signing = SigV4Check("key", "hush", "eu-central-1", "glue")
    signed = {
        "uri": fake.url,
        "rest__sigv4_enabled": "true",
        "rest__signing_region": "eu-central-1",
        "rest__signing_name": "glue",
        "rest__access_key_id": "key",
        "header__X_Team": "ice",
    }
    storage = MemoryStorage(world=RealWorld())
    properties = catalog_of(**signed, rest__secret_access_key="hush")
    catalog = await open_catalog(properties, storage, RealWorld(), create=False)
    try:
        await catalog.create_namespace(("a b", "é"))
        assert await catalog.list_namespaces() == [("a b",), ("a b", "é")]
    finally:
        await catalog.close()
    wrong = catalog_of(**signed, rest__secret_access_key="0th3r")
    with pytest.raises(AccessError, match="SignatureDoesNotMatch") as error:
        await open_catalog(wrong, storage, RealWorld(), create=False)
    assert "0th3r" not in str(error.value)
