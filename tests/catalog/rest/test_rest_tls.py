"""TLS to a REST catalog, on a server that asks for what a real one asks for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from committer.backends.catalog_kinds import open_catalog
from committer.catalog.catalog_properties import CatalogProperties
from committer.errors import CatalogUnavailableError, SettingsError
from committer.real_world import RealWorld
from tests.support.memory.memory_storage import MemoryStorage
from tests.support.servers.certificates import Authority, Pair
from tests.support.servers.fake_rest import FakeRest


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@asynccontextmanager
async def serving(
    authority: Authority, *, host: str = "127.0.0.1", wants_client: bool = False
) -> AsyncIterator[FakeRest]:
    pair = authority.issue("server", host=host)
    context = authority.server_context(pair, wants_client=wants_client)
    storage = MemoryStorage(world=RealWorld())
    async with FakeRest(storage, warehouse="memory://warehouse", tls=context) as fake:
        yield fake


async def asked(fake: FakeRest, **files: Path) -> list[tuple[str, ...]]:
    """List the namespaces by a catalog of these properties; `_` in names stands for `.`."""
    named = {name.replace("_", "."): str(path) for name, path in files.items()}
    properties = CatalogProperties("prod", {"type": "rest", "uri": fake.url, **named})
    storage = MemoryStorage(world=RealWorld())
    catalog = await open_catalog(properties, storage, RealWorld(), create=False)
    try:
        return await catalog.list_namespaces()
    finally:
        await catalog.close()


async def test_a_certificate_of_a_private_authority_is_trusted_by_its_bundle(
    authority: Authority,
) -> None:
    async with serving(authority) as fake:
        assert await asked(fake, ssl_cabundle=authority.bundle) == []
        with pytest.raises(CatalogUnavailableError, match=r"no connection.*`ssl\.cabundle`"):
            await asked(fake)


async def test_a_certificate_of_another_host_is_not_trusted(authority: Authority) -> None:
    async with serving(authority, host="127.0.0.2") as fake:
        with pytest.raises(CatalogUnavailableError, match="certificate is not valid for"):
            await asked(fake, ssl_cabundle=authority.bundle)
        assert fake.headers == []


async def test_a_server_that_wants_a_certificate_gets_ours(authority: Authority) -> None:
    ours: Pair = authority.issue("client")
    async with serving(authority, wants_client=True) as fake:
        found = await asked(
            fake,
            ssl_cabundle=authority.bundle,
            ssl_client_cert=ours.certificate,
            ssl_client_key=ours.key,
        )
        assert found == []
        with pytest.raises(CatalogUnavailableError, match=r"`ssl\.client\.cert`"):
            await asked(fake, ssl_cabundle=authority.bundle)


async def test_a_key_with_a_passphrase_is_refused_and_the_terminal_is_not_asked(
    authority: Authority,
) -> None:
    ours = authority.issue("client", passphrase="hush")
    async with serving(authority) as fake:
        with pytest.raises(SettingsError, match="its key has a passphrase"):
            await asked(fake, ssl_client_cert=ours.certificate, ssl_client_key=ours.key)
