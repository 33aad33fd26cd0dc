"""Which servers and addresses the Redis queue refuses, without a server of ours."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from committer.errors import QueueUnavailableError, SettingsError
from committer.queue.redis_stream import RedisQueue


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
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            while words := int((await reader.readuntil(b"\r\n"))[1:]):
                request = [await reader.readuntil(b"\r\n") for _ in range(2 * words)]
                known = request[1].upper() == b"INFO\r\n"
                writer.write(f"${len(info)}\r\n{info}\r\n".encode() if known else b"+OK\r\n")
        writer.close()
        await writer.wait_closed()
        closed.set()

    closed = asyncio.Event()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    queue = RedisQueue(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}", consumer="one")
    try:
        with pytest.raises(SettingsError, match=complaint):
            await queue.probe()
    finally:
        await queue.close()
        await closed.wait()
        server.close()


@pytest.mark.parametrize("url", ["http://host", "redis://host:port", "nothing", "redis://[", ""])
def test_a_broken_url_is_a_wrong_setting(url: str) -> None:
    with pytest.raises(SettingsError, match="URL of the queue"):
        RedisQueue(url, consumer="one")


async def test_an_unreachable_server_is_an_outage_and_its_password_stays_secret() -> None:
    for url in ("redis://u:secret@127.0.0.1:1/3?password=secret", "rediss://:secret@127.0.0.1:1"):
        queue = RedisQueue(url, consumer="one")
        with pytest.raises(QueueUnavailableError, match=r"127.0.0.1:1") as caught:
            await queue.probe()
        assert "secret" not in str(caught.value)
        assert str(caught.value).endswith(": Connection refused")
        await queue.close()
