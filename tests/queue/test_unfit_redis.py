"""Which servers and addresses the Redis queue refuses, without a server of ours."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from committer.errors import QueueUnavailableError, SettingsError
from committer.queue.redis_stream import RedisQueue
from tests.support.servers.certificates import Authority
from tests.support.servers.queue_servers import FixedIdentity


@asynccontextmanager
async def answering(info: str, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Serve a Redis that knows the command INFO alone; yield its port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while words := int((await reader.readuntil(b"\r\n"))[1:]):
                request = [await reader.readuntil(b"\r\n") for _ in range(2 * words)]
                known = request[1].upper() == b"INFO\r\n"
                writer.write(f"${len(info)}\r\n{info}\r\n".encode() if known else b"+OK\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        await closed(server)


async def closed(server: asyncio.Server) -> None:
    """Close a server, and wait until its last connection is closed."""
    ended = asyncio.create_task(server.wait_closed())
    await asyncio.sleep(0)
    server.close()
    await ended


def opened(url: str) -> RedisQueue:
    return RedisQueue(url, identity=FixedIdentity(), consumer="one")


@pytest.mark.parametrize(
    ("info", "complaint"),
    [
        ("redis_version:6.2.14\r\nmaxmemory_policy:noeviction", "version 6.2.14.*Redis 7.0"),
        ("maxmemory_policy:noeviction", "version unknown"),
        ("redis_version:7.0.0\r\nmaxmemory_policy:noeviction\r\ncluster_enabled:1", "cluster"),
        ("redis_version:7.0.0", "maxmemory-policy `None`"),
    ],
)
async def test_an_unfit_server_is_refused(info: str, complaint: str) -> None:
    async with answering(info) as port:
        queue = opened(f"redis://127.0.0.1:{port}")
        with pytest.raises(SettingsError, match=complaint):
            await queue.probe()
        await queue.close()


@pytest.mark.parametrize("url", ["http://host", "redis://host:port", "nothing", "redis://[", ""])
def test_a_broken_url_is_a_wrong_setting(url: str) -> None:
    with pytest.raises(SettingsError, match="URL of the queue"):
        opened(url)


async def test_an_unreachable_server_is_an_outage_and_its_password_stays_secret() -> None:
    for url in ("redis://u:secret@127.0.0.1:1/3?password=secret", "rediss://:secret@127.0.0.1:1"):
        queue = opened(url)
        with pytest.raises(QueueUnavailableError, match=r"127.0.0.1:1") as caught:
            await queue.probe()
        assert "secret" not in str(caught.value)
        assert str(caught.value).endswith(": Connection refused")
        await queue.close()


# --- TLS -----------------------------------------------------------------------------------------

FIT = "redis_version:7.0.0\r\nmaxmemory_policy:noeviction"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


async def test_a_server_whose_ca_the_url_names_is_trusted_and_another_is_not(
    authority: Authority,
) -> None:
    context = authority.server_context(authority.issue("queue"))
    async with answering(FIT, tls=context) as port:
        url = f"rediss://:secret@127.0.0.1:{port}"
        trusting = opened(f"{url}?ssl_ca_certs={authority.bundle}")
        await trusting.probe()
        await trusting.close()
        queue = opened(url)
        with pytest.raises(QueueUnavailableError, match="certificate verify failed") as caught:
            await queue.probe()
        assert "?ssl_ca_certs=/" in str(caught.value)
        assert "secret" not in str(caught.value)
        await queue.close()


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_file_of_no_certificates_is_a_wrong_setting(content: str | None, tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(SettingsError, match=f"`ssl_ca_certs` names `{file}`, which cannot be read"):
        opened(f"rediss://127.0.0.1:1?ssl_ca_certs={file}")


@pytest.mark.parametrize("answer", [b"-ERR unknown command\r\n", b""])
async def test_a_port_without_tls_is_named(answer: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(answer)
        # A server that has read no whole command says nothing.
        await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"rediss://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    queue = RedisQueue(url, identity=FixedIdentity(), consumer="one", answer_s_max=0.5)
    try:
        with pytest.raises(QueueUnavailableError, match="begin the URL with `redis://`"):
            await queue.probe()
    finally:
        await queue.close()
        await closed(server)
