"""A committer that dies, or stands still, at a chosen call of a chosen port. Run in a child.

`DIES_AT` names the point: `<port>.<method> <kind>/<moment>[/<n>]`, as in
`storage.create manifest/before/2`. The kind says what sort of object it is about (nothing for other
ports), the moment is `before` the call, `within` (half of the objects) or `after`; n counts the
calls of that name from 1. Calls count once the file `DIES_WHEN` exists. Every call is noted in the
file `CALLS_SEEN`: a line of `+` if it counts, `*` if it is about several objects, and the name.

`DIES_BY`: `exit` (nothing is cleaned up, as by kill -9), or `stop` (SIGSTOP, until the test sends
SIGCONT).
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import isasyncgen, isawaitable
from pathlib import Path
from typing import Any

from committer.backends import catalog_kinds, storage_schemes
from committer.cli.committers.serve import serve
from committer.plan.cleanup import expiry
from committer.ports.storage import NewObject
from committer.queue import redis_leases, redis_stream
from committer.queue.redis_leases import RedisLeases
from committer.queue.redis_stream import RedisQueue
from committer.service.upkeep import expirer

EXIT_CODE = 86

# The kind of a location: the first of these that is found in it.
_KINDS = {
    "probe": r"/frazil-probe-",
    "inbox": r"/requests/inbox(/|$)",
    "quarantine": r"/requests/quarantine(/|$)",
    "journal": r"/requests/upkeep(/|$)",
    "other requests": r"/requests(/|$)",
    "metadata file": r"\.metadata\.json$",
    "manifest list": r"/snap-[^/]*\.avro$",
    "manifest": r"\.avro$",
}


@dataclass(slots=True)
class Point:
    """Where to die. `calls` counts by name, from when it is due; `catalog_calls`: under way."""

    name: str
    moment: str
    number: int
    by: str
    due: Path
    seen: Path
    calls: Counter[str] = field(default_factory=Counter)
    catalog_calls: int = 0
    catalog_is_idle: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Point:
        name, moment, number = (environment.get("DIES_AT", "") + "//1").split("/")[:3]
        return cls(
            name,
            moment,
            int(number or 1),
            environment.get("DIES_BY", "exit"),
            Path(environment["DIES_WHEN"]),
            Path(environment["CALLS_SEEN"]),
        )

    def moment_of(self, name: str, *, objects: int = 1) -> str | None:
        """Return at which moment of the call that begins now to die, None if at none."""
        counts = self.due.exists()
        with self.seen.open("a") as seen:
            seen.write(f"{'+' if counts else ' '}{'*' if objects > 1 else ' '}{name}\n")
        if not counts:
            return None
        self.calls[name] += 1
        return self.moment if (name, self.calls[name]) == (self.name, self.number) else None

    @contextmanager
    def calling(self, port: str) -> Iterator[None]:
        """Mark a call as under way."""
        self.catalog_calls += port == "catalog"
        self.catalog_is_idle.clear()
        try:
            yield
        finally:
            self.catalog_calls -= port == "catalog"
            if not self.catalog_calls:
                self.catalog_is_idle.set()

    async def strike(self) -> None:
        """Exit, or stop. A stop waits until no catalog call is under way: with the database's lock,
        it would block every process.
        """
        if self.by != "stop":
            os._exit(EXIT_CODE)
        while self.catalog_calls:
            await self.catalog_is_idle.wait()
        os.kill(os.getpid(), signal.SIGSTOP)


class Mortal:
    """A port before its adapter: each asynchronous call may be the last."""

    def __init__(self, inner: Any, port: str, point: Point) -> None:
        self._inner = inner
        self._port = port
        self._point = point

    def __getattr__(self, method: str) -> Any:
        found = getattr(self._inner, method)
        return self._watched(found, method) if callable(found) else found

    def _watched(self, call: Callable[..., Any], method: str) -> Callable[..., Any]:
        def watched(*args: Any, **kwargs: Any) -> Any:
            answer = call(*args, **kwargs)
            # The objects deleted together vary, so the call is named after the last one.
            objects = _objects(args)[-1:] if method == "delete" else _objects(args)
            name = f"{self._port}.{method} {kind_of(objects)}".strip()
            if isasyncgen(answer):
                return self._listed(answer, name)
            if isawaitable(answer):
                return self._called(answer, lambda half: call(half, **kwargs), name, args)
            return answer

        return watched

    async def _called(
        self,
        answer: Awaitable[Any],
        again: Callable[[Any], Awaitable[Any]],
        name: str,
        args: tuple[Any, ...],
    ) -> Any:
        moment = self._point.moment_of(name, objects=len(_objects(args)))
        if moment == "within":
            await again(args[0][: len(args[0]) // 2])
        if moment in ("before", "within"):
            await self._point.strike()
        with self._point.calling(self._port):
            result = await answer
        if moment == "after":
            await self._point.strike()
        return result

    async def _listed(self, answer: AsyncIterator[Any], name: str) -> AsyncIterator[Any]:
        if self._point.moment_of(name) is not None:
            await self._point.strike()
        async for found in answer:
            yield found


def kind_of(objects: Sequence[Any]) -> str:
    """Return the kinds of a call's objects."""
    kinds = {_kind(one) for one in objects}
    return " and ".join(sorted(kind for kind in kinds if kind))


def _objects(args: Sequence[Any]) -> Sequence[Any]:
    """Return a call's objects: its first argument, one or many."""
    first = args[0] if args else None
    if isinstance(first, Sequence) and not isinstance(first, (str, bytes)):
        return first
    return (first,)


def _kind(one: object) -> str:
    location = one.location if isinstance(one, NewObject) else one
    if not isinstance(location, str):
        return ""
    found = (kind for kind, pattern in _KINDS.items() if re.search(pattern, location))
    return next(found, "")


def run(environment: Mapping[str, str], log: str, folder: str) -> None:
    """Run the committer until the end. The process is new, and has imported all of it."""
    os.setsid()
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for standard in (1, 2):
        os.dup2(descriptor, standard)
    # Else a table would need a hundred commits before its first expiry, and ten seconds for more.
    expiry.SNAPSHOTS_MIN = 1
    expirer.LOOK_INTERVAL_S = 0.1
    _make_mortal(Point.of(environment))
    serve()


def _make_mortal(point: Point) -> None:
    """Make every opened adapter a mortal one."""
    open_storage, open_catalog = storage_schemes.open_storage, catalog_kinds.open_catalog

    def mortal_storage(*args: Any, **kwargs: Any) -> Any:
        return Mortal(open_storage(*args, **kwargs), "storage", point)

    async def mortal_catalog(*args: Any, **kwargs: Any) -> Any:
        return Mortal(await open_catalog(*args, **kwargs), "catalog", point)

    def mortal_queue(*args: Any, **kwargs: Any) -> Any:
        return Mortal(RedisQueue(*args, **kwargs), "queue", point)

    def mortal_leases(*args: Any, **kwargs: Any) -> Any:
        return Mortal(RedisLeases(*args, **kwargs), "leases", point)

    changed: Any = storage_schemes
    changed.open_storage = mortal_storage
    changed = catalog_kinds
    changed.open_catalog = mortal_catalog
    changed = redis_stream
    changed.RedisQueue = mortal_queue
    changed = redis_leases
    changed.RedisLeases = mortal_leases
