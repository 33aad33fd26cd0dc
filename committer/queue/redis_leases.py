"""Members and their leases on Redis (Redis ≥ 7, Valkey ≥ 8)
(`lease_table.py` of the tests has the rule in Python).

    {frazil:<identity>:leases}:members    hash: process → its record, see below
    {frazil:<identity>:leases}:shards     hash: shard → "<term> <process>", the last lease of each
    {frazil:<identity>:leases}:changes    stream of one entry, whose id is the version
    {frazil:<identity>:leases}:status-urls    hash: process → where its `/status` is

A process is one incarnation of a member: 32 hexadecimal digits. Its record is "<expires, ms>
<state> <installation, as JSON>\\n<name>". A lease is in force while its process is a member, so a
renewal writes one field, however many shards it is for.

The identity of the inbox is in the names of the keys (`redis_keys`). The record has the
installation, too, because a copy of an inbox has the identity of the original, and two committers
of one inbox may have been given two catalogs. A process whose installation is not that of the
members is refused: its record stands among theirs with the state "refused", so that both sides can
name it. How it works:

* A script is one step, and reads the server's clock, not the client's. Each call is one exchange.
* It runs on a full server, too (`allow-oom`): else no committer could drain it. It writes four
  small keys.
* A member that waits for a change is woken by the stream. A stream that was lost begins again with
  a higher id, because ids are the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

import orjson
from redis.exceptions import ResponseError

from committer.errors import QueueKeyTakenError
from committer.ports.installation import Identity, Installation
from committer.ports.leases import Assignment, Lease, Member, Renewal, Standing
from committer.queue.redis_connection import RedisConnection, is_key_taken, raise_first
from committer.queue.redis_keys import ensure_identity, find_identity, lease_keys

_TYPES = ("hash", "hash", "stream", "hash")
_WORKING, _LEAVING, _CUT_OFF, _REFUSED = range(4)

# Numbers pass through %.0f: a Lua number of so many digits is printed as 1.8e+12.
_SCRIPT = """#!lua flags=allow-oom
local process, name, installation, verb = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local lease_ms, is_new, state = tonumber(ARGV[5]), ARGV[6] == "1", ARGV[7]
local claim, release = ARGV[8], ARGV[9]
local REFUSED = "3"
local clock = redis.call("TIME")
local now_ms = clock[1] * 1000 + math.floor(clock[2] / 1000)
local is_changed, standing = false, "renewed"
local members = {}

local function pairs_of(key)
  local flat, found = redis.call("HGETALL", key), {}
  for i = 1, #flat, 2 do found[flat[i]] = flat[i + 1] end
  return found
end

local function remove(member)
  members[member] = nil
  redis.call("HDEL", KEYS[1], member)
  redis.call("HDEL", KEYS[4], member)
  is_changed = true
end

local function is_member(member)
  return members[member] and members[member].state ~= REFUSED
end

local function register()
  local before = members[process]
  members[process] = {
    expires = now_ms + lease_ms, state = state, installation = installation, name = name
  }
  redis.call("HSET", KEYS[1], process,
    string.format("%.0f %s ", now_ms + lease_ms, state) .. installation .. "\\n" .. name)
  is_changed = is_changed or not before or before.state ~= state
end

for member, record in pairs(pairs_of(KEYS[1])) do
  local expires, its_state, its_installation, its_name =
    string.match(record, "^(%d+) (%d) ([^\\n]*)\\n(.*)$")
  members[member] = {
    expires = tonumber(expires), state = its_state, installation = its_installation, name = its_name
  }
end

if verb == "leave" then
  if members[process] then remove(process) end
elseif verb == "renew" then
  local tenures = pairs_of(KEYS[2])
  local is_displaced, is_foreign = false, false
  for member, one in pairs(members) do
    if one.expires <= now_ms then remove(member)
    elseif member ~= process and one.state ~= REFUSED then
      if one.installation ~= installation then is_foreign = true
      elseif one.name == name then is_displaced = not is_new end
    end
  end
  if is_foreign and not is_member(process) then
    standing, state = "foreign", REFUSED
    register()
  elseif is_displaced then
    standing = "displaced"
  else
    if not is_member(process) then standing = "new" end
    for member, one in pairs(members) do
      local is_namesake = one.name == name and one.installation == installation
      if is_namesake and member ~= process then remove(member) end
    end
    register()
    local urls = pairs_of(KEYS[4])
    for member in pairs(urls) do
      if not members[member] then redis.call("HDEL", KEYS[4], member) end
    end
    if (urls[process] or "") ~= ARGV[10] then redis.call("HSET", KEYS[4], process, ARGV[10]) end
    local function owner_of(shard)
      local term, owner = string.match(tenures[shard] or "0 nobody", "^(%d+) (.*)$")
      return tonumber(term), owner
    end
    for shard in string.gmatch(release, "%d+") do
      local term, owner = owner_of(shard)
      if owner == process then
        tenures[shard] = string.format("%.0f nobody", term)
        redis.call("HSET", KEYS[2], shard, tenures[shard])
        is_changed = true
      end
    end
    for shard in string.gmatch(claim, "%d+") do
      local term, owner = owner_of(shard)
      if not is_member(owner) then
        tenures[shard] = string.format("%.0f %s", math.max(term + 1, now_ms), process)
        redis.call("HSET", KEYS[2], shard, tenures[shard])
        is_changed = true
      end
    end
  end
end

if is_changed then redis.call("XADD", KEYS[3], "MAXLEN", 1, "*", "by", process) end
local last = redis.call("XREVRANGE", KEYS[3], "+", "-", "COUNT", 1)
local version = last[1] and last[1][1] or "0-0"
local shown, urls = {}, pairs_of(KEYS[4])
for member, one in pairs(members) do
  if one.expires > now_ms then
    local left_ms = string.format("%.0f", one.expires - now_ms)
    table.insert(shown,
      {member, one.name, one.state, left_ms, one.installation, urls[member] or ""})
  end
end
return {standing, version, shown, redis.call("HGETALL", KEYS[2])}
"""


class RedisLeases:
    """`url` and `identity` as of `RedisQueue`. `installation`: what this committer serves.
    `member`: its name, `process`: its incarnation, another one after each start.
    """

    def __init__(
        self,
        url: str,
        *,
        identity: Identity,
        installation: Installation,
        member: str,
        process: UUID,
        answer_s_max: float = 5.0,
    ) -> None:
        self._connection = RedisConnection(url, answer_s_max=answer_s_max)
        self._identity = identity
        self._keys: tuple[str, ...] = ()  # once the identity is known
        self._installation = orjson.dumps([installation.inbox, installation.catalog])
        self._member = member
        self._process = process.hex

    async def renew(self, renewal: Renewal) -> Assignment:
        await self._name_keys()
        return _assignment(
            await self._run(
                "renew",
                round(renewal.lease_s * 1_000),
                int(renewal.is_new),
                _state(renewal),
                _joined(renewal.claim),
                _joined(renewal.release),
                renewal.status_url or "",
            )
        )

    async def look(self) -> Assignment:
        if not await self._has_keys():
            return Assignment(members=(), leases={}, version="0-0")
        return _assignment(await self._run("look"))

    async def leave(self) -> None:
        if await self._has_keys():
            await self._run("leave")

    async def wait_for_change(self, version: str, *, wait_s: float) -> None:
        await self._name_keys()
        block_ms = max(1, round(wait_s * 1_000))
        read = ("XREAD", "BLOCK", block_ms, "STREAMS", self._keys[2], version)
        with self._connection.explained():
            try:
                await self._connection.block(wait_s, read)
            except ResponseError as error:
                await self._explain(error)
                raise

    async def close(self) -> None:
        with self._connection.explained():
            await self._connection.close()

    async def _name_keys(self) -> None:
        if not self._keys:
            self._keys = lease_keys(await ensure_identity(self._identity, self._connection))

    async def _has_keys(self) -> bool:
        """Name the keys, unless the inbox has no identity yet: then no key exists."""
        if not self._keys:
            identity = await find_identity(self._identity, self._connection)
            self._keys = () if identity is None else lease_keys(identity)
        return bool(self._keys)

    async def _run(self, verb: str, *words: object) -> Sequence[Any]:
        given = (*words, *(0, 0, 0, "", "", "")[len(words) :])
        own = (self._process, self._member, self._installation)
        command = ("EVAL", _SCRIPT, len(self._keys), *self._keys, *own, verb, *given)
        with self._connection.explained():
            answers = await self._connection.commands([command])
            await self._explain(answers[0])
            raise_first(answers)
        answer: Sequence[Any] = answers[0]
        return answer

    async def _explain(self, answer: object) -> None:
        """Raise the error of a script.
        Errors: `QueueKeyTakenError`, naming the key, which a script's error does not."""
        if is_key_taken(answer):
            expected = dict(zip(self._keys, _TYPES, strict=True))
            for message in (await self._connection.taken(expected)).values():
                raise QueueKeyTakenError(message)


def _state(renewal: Renewal) -> int:
    if renewal.is_leaving:
        return _LEAVING
    return _CUT_OFF if renewal.is_cut_off else _WORKING


def _joined(shards: Iterable[int]) -> str:
    return " ".join(map(str, sorted(shards)))


def _assignment(answer: Sequence[Any]) -> Assignment:
    standing, version, shown, tenures = answer
    members = {row[0]: _member(row) for row in shown if int(row[2]) != _REFUSED}
    refused = [_member(row) for row in shown if int(row[2]) == _REFUSED]
    leases = {}
    for shard, tenure in zip(tenures[::2], tenures[1::2], strict=True):
        term, process = tenure.split(b" ", 1)
        if process in members:
            leases[int(shard)] = Lease(members[process].name, int(term))
    return Assignment(
        members=tuple(sorted(members.values(), key=lambda member: member.name)),
        leases=dict(sorted(leases.items())),
        version=version.decode(),
        standing=_STANDINGS[standing],
        refused=tuple(sorted(refused, key=lambda member: member.name)),
    )


def _member(row: Sequence[bytes]) -> Member:
    _, name, state, left_ms, installation, status_url = row
    inbox, catalog = orjson.loads(installation)
    return Member(
        name.decode(),
        is_leaving=int(state) == _LEAVING,
        left_s=int(left_ms) / 1_000,
        is_cut_off=int(state) == _CUT_OFF,
        installation=Installation(inbox, catalog),
        status_url=status_url.decode() or None,
    )


_STANDINGS: dict[bytes, Standing] = {
    b"renewed": "renewed",
    b"new": "new",
    b"displaced": "displaced",
    b"foreign": "foreign",
}
