"""A key of the queue's server that another program has taken: `SET` where a stream of Frazil is.

The stream is renamed, and comes back under its name with everything in it: its entries, its group,
and what is pending. In the meantime nothing can be announced in its shard, and the inbox serves it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

from redis.asyncio import Redis

from committer.ports.queue import shard_of
from committer.queue.redis_keys import shard_key

NAME = "the stream of a shard is a string (WRONGTYPE)"


@asynccontextmanager
async def taken_stream(url: str, identity: str, table_uuid: UUID) -> AsyncIterator[str]:
    """Take the key of a table's shard in an installation while inside; yield its name."""
    key = shard_key(identity, shard_of(table_uuid))
    aside = f"{key}:corpus-{uuid4().hex[:8]}"
    async with Redis.from_url(url, protocol=2) as redis:
        try:
            async with redis.pipeline(transaction=True) as change:
                if await redis.exists(key):
                    change.rename(key, aside)
                change.set(key, "not of Frazil")
                await change.execute()
            yield key
        finally:
            async with redis.pipeline(transaction=True) as change:
                change.delete(key)
                if await redis.exists(aside):
                    change.rename(aside, key)
                await change.execute()
