"""Members and their leases on Redis (Redis ≥ 7, Valkey ≥ 8)
(`lease_table.py` of the tests has the rule in Python).

    {frazil:leases}:members    hash: process → "<expires, ms> <is leaving: 0, 1> <name>"
    {frazil:leases}:shards     hash: shard → "<term> <process>", the last lease of each
    {frazil:leases}:changes    stream of one entry, whose id is the version
    {frazil:leases}:status-urls    hash: process → where its `/status` is; apart from the members,
        whose lines earlier releases read

A process is one incarnation of a member: 32 hexadecimal digits. A lease is in force while its
process is a member, so a renewal writes one field, however many shards it is for. How it works:

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

from redis.exceptions import ResponseError

from committer.errors import QueueKeyTakenError
from committer.ports.leases import Assignment, Lease, Member, Renewal, Standing
from committer.queue.redis_connection import RedisConnection, is_key_taken, raise_first

_NAMES = ("members", "shards", "changes", "status-urls")
_KEYS = tuple(f"{{frazil:leases}}:{name}" for name in _NAMES)
_TYPES = dict(zip(_KEYS, ("hash", "hash", "stream", "hash"), strict=True))

# Numbers pass through %.0f: a Lua number of so many digits is printed as 1.8e+12.
_SCRIPT = """#!lua flags=allow-oom
local process, name, verb = ARGV[1], ARGV[2], ARGV[3]
local lease_ms, is_new, leaving = tonumber(ARGV[4]), ARGV[5] == "1", ARGV[6]
local clock = redis.call("TIME")
local now_ms = clock[1] * 1000 + math.floor(clock[2] / 1000)
local is_changed, standing, is_displaced = false, "renewed", false
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

for member, said in pairs(pairs_of(KEYS[1])) do
  local expires, is_leaving, its_name = string.match(said, "^(%d+) (%d) (.*)$")
  members[member] = {expires = tonumber(expires), leaving = is_leaving, name = its_name}
end

if verb == "leave" then
  if members[process] then remove(process) end
elseif verb == "renew" then
  local tenures = pairs_of(KEYS[2])
  for member, one in pairs(members) do
    if one.expires <= now_ms then remove(member)
    elseif one.name == name and member ~= process then is_displaced = not is_new end
  end
  local before = members[process]
  if is_displaced then
    standing = "displaced"
  else
    if not before then standing = "new" end
    for member, one in pairs(members) do
      if one.name == name and member ~= process then remove(member) end
    end
    members[process] = {expires = now_ms + lease_ms, leaving = leaving, name = name}
    redis.call("HSET", KEYS[1], process,
      string.format("%.0f %s %s", now_ms + lease_ms, leaving, name))
    is_changed = is_changed or not before or before.leaving ~= leaving
    local urls = pairs_of(KEYS[4])
    for member in pairs(urls) do
      if not members[member] then redis.call("HDEL", KEYS[4], member) end
    end
    if (urls[process] or "") ~= ARGV[9] then redis.call("HSET", KEYS[4], process, ARGV[9]) end
    local function owner_of(shard)
      local term, owner = string.match(tenures[shard] or "0 nobody", "^(%d+) (.*)$")
      return tonumber(term), owner
    end
    for shard in string.gmatch(ARGV[8], "%d+") do
      local term, owner = owner_of(shard)
      if owner == process then
        tenures[shard] = string.format("%.0f nobody", term)
        redis.call("HSET", KEYS[2], shard, tenures[shard])
        is_changed = true
      end
    end
    for shard in string.gmatch(ARGV[7], "%d+") do
      local term, owner = owner_of(shard)
      if not members[owner] then
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
local told, urls = {}, pairs_of(KEYS[4])
for member, one in pairs(members) do
  if one.expires > now_ms then
    local left_ms = string.format("%.0f", one.expires - now_ms)
    table.insert(told, {member, one.name, one.leaving, left_ms, urls[member] or ""})
  end
end
return {standing, version, told, redis.call("HGETALL", KEYS[2])}
"""


class RedisLeases:
    """`url` as of `RedisQueue`. `member`: the name of this committer, `process`: its incarnation,
    another one after each start.
    """

    def __init__(self, url: str, *, member: str, process: UUID, answer_s_max: float = 5.0) -> None:
        self._connection = RedisConnection(url, answer_s_max=answer_s_max)
        self._member = member
        self._process = process.hex

    async def renew(self, renewal: Renewal) -> Assignment:
        return _assignment(
            await self._run(
                "renew",
                round(renewal.lease_s * 1_000),
                int(renewal.is_new),
                int(renewal.is_leaving),
                _joined(renewal.claim),
                _joined(renewal.release),
                renewal.status_url or "",
            )
        )

    async def look(self) -> Assignment:
        return _assignment(await self._run("look"))

    async def leave(self) -> None:
        await self._run("leave")

    async def wait_for_change(self, version: str, *, wait_s: float) -> None:
        block_ms = max(1, round(wait_s * 1_000))
        read = ("XREAD", "BLOCK", block_ms, "STREAMS", _KEYS[2], version)
        with self._connection.explained():
            try:
                await self._connection.block(wait_s, read)
            except ResponseError as error:
                await self._explain(error)
                raise

    async def close(self) -> None:
        with self._connection.explained():
            await self._connection.close()

    async def _run(self, verb: str, *words: object) -> Sequence[Any]:
        given = (*words, *(0, 0, 0, "", "", "")[len(words) :])
        command = ("EVAL", _SCRIPT, len(_KEYS), *_KEYS, self._process, self._member, verb, *given)
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
            for message in (await self._connection.taken(_TYPES)).values():
                raise QueueKeyTakenError(message)


def _joined(shards: Iterable[int]) -> str:
    return " ".join(map(str, sorted(shards)))


def _assignment(answer: Sequence[Any]) -> Assignment:
    standing, version, told, tenures = answer
    names = {process: name.decode() for process, name, *_ in told}
    members = [
        Member(
            names[process],
            flag == b"1",
            int(left_ms) / 1_000,
            status_url=url.decode() or None,
        )
        for process, _, flag, left_ms, url in told
    ]
    leases = {}
    for shard, tenure in zip(tenures[::2], tenures[1::2], strict=True):
        term, process = tenure.split(b" ", 1)
        if process in names:
            leases[int(shard)] = Lease(names[process], int(term))
    return Assignment(
        members=tuple(sorted(members, key=lambda member: member.name)),
        leases=dict(sorted(leases.items())),
        version=version.decode(),
        standing=_STANDINGS[standing],
    )


_STANDINGS: dict[bytes, Standing] = {
    b"renewed": "renewed",
    b"new": "new",
    b"displaced": "displaced",
}
