"""The names of the keys on a Redis server (public: any client may ring, see `entry_fields`).

    {frazil:<identity>:NN}                       stream of shard NN, 00 … 63
    {frazil:<identity>:NN}:receipts:<reply-to>   NN spreads the addresses over the shards
    {frazil:<identity>:leases}:<name>            see `redis_leases`

`<identity>` is that of the inbox: each installation has keys of its own, so several share one
database.
"""

from __future__ import annotations

from zlib import crc32

from committer.errors import QueueUnavailableError, TransientError
from committer.ports.installation import Identity
from committer.ports.queue import SHARDS
from committer.queue.redis_connection import RedisConnection

LEASES = ("members", "shards", "changes", "status-urls")


def shard_key(identity: str, shard: int) -> str:
    """Return the key of a shard's stream."""
    return f"{{frazil:{identity}:{shard:02d}}}"


def receipts_key(identity: str, reply_to: str) -> str:
    """Return the key of the receipts of an address."""
    return f"{shard_key(identity, crc32(reply_to.encode()) % SHARDS)}:receipts:{reply_to}"


def lease_keys(identity: str) -> tuple[str, ...]:
    """Return the keys of the leases: members, shards, changes, status URLs."""
    return tuple(f"{{frazil:{identity}:leases}}:{name}" for name in LEASES)


async def ensure_identity(identity: Identity, connection: RedisConnection) -> str:
    """Return the identity, made where there is none. Errors: `QueueUnavailableError` where the
    inbox does not answer: without its identity the names of the keys are not known.
    """
    try:
        return await identity.ensure()
    except TransientError as error:
        raise _unnamed(identity, connection, error) from error


async def find_identity(identity: Identity, connection: RedisConnection) -> str | None:
    """Return the identity; None where there is none yet: then there is no key either, and the
    server answers. Errors: as `ensure_identity`; those of the server.
    """
    try:
        name = await identity.find()
    except TransientError as error:
        raise _unnamed(identity, connection, error) from error
    if name is None:
        with connection.explained():
            await connection.results([("PING",)])
    return name


def _unnamed(
    identity: Identity, connection: RedisConnection, error: TransientError
) -> QueueUnavailableError:
    return QueueUnavailableError(
        f"the queue server {connection.server}: its keys have the identity of the inbox in their"
        f" names, and `{identity.location}` cannot be read: {error}"
    )
