"""A hostile request: raw bytes under a key, and the reason code that they must get."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from committer.ports.pointer_swap import LoadedTable
from committer.ports.storage import NewObject
from committer.reason import Reason
from committer.request.request_format import EncodedRequest, digest
from tests.corpus.tables import FLIGHTS
from tests.support.builders.bad_requests import BadRequest, good

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sent:
    """The objects that a client writes, past every check of Frazil: the request, and its files.

    `told`: what its doorbell carries, if that is something else. `make` puts an entry of another
    kind than a file where the request would be.
    """

    key: str
    content: bytes
    objects: tuple[NewObject, ...] = ()
    told: bytes | None = None
    make: Callable[[Path], object] | None = None

    @classmethod
    def of(cls, sealed: EncodedRequest, *objects: NewObject) -> Sent:
        return cls(sealed.request.inbox_key, sealed.content, objects)


@dataclass(frozen=True, slots=True)
class Hostile:
    """`send(table, producer)` must end in quarantine with `reason`, alone; with None it lands.
    `table`: which one of `TABLES` it is for. `has_large_neighbor`: a good request that waits for
    the same worker process is published with it."""

    name: str
    reason: Reason | None
    send: Callable[[LoadedTable, str], Sent]
    table: str = FLIGHTS
    has_large_neighbor: bool = False


def bad(requests: Iterable[BadRequest]) -> Iterable[Hostile]:
    """Yield requests whose own bytes are right."""
    for one in requests:
        yield Hostile(one.name, one.reason, partial(_sent, one))


def _sent(one: BadRequest, table: LoadedTable, producer: str) -> Sent:
    return Sent.of(one.make(table, producer))


def changed_bytes(
    name: str, reason: Reason, change: Callable[[bytes], bytes], **line: object
) -> Hostile:
    """Return a case that sends other bytes under the key of a valid request."""

    def send(table: LoadedTable, producer: str) -> Sent:
        right = good(table, producer, **line)
        content = change(right.content)
        assert content != right.content
        return Sent(right.request.inbox_key, content)

    return Hostile(name, reason, send)


def replaced(name: str, reason: Reason, old: str, new: str) -> Hostile:
    """Return a case with other text in the line, where it stands first."""

    def change(content: bytes) -> bytes:
        line, _, body = content.partition(b"\n")
        return line.replace(old.encode(), new.encode(errors="surrogatepass"), 1) + b"\n" + body

    return changed_bytes(name, reason, change)


def changed_line(name: str, reason: Reason, change: Callable[[Document], object]) -> Hostile:
    """Return a case whose line is changed, in place or by a new document; the manifests stay."""

    def changed(content: bytes) -> bytes:
        line, _, body = content.partition(b"\n")
        document = json.loads(line)
        other = change(document)
        return json.dumps(document if other is None else other).encode() + b"\n" + body

    return changed_bytes(name, reason, changed)


def with_manifest(
    name: str,
    reason: Reason,
    content: Callable[[LoadedTable, EncodedRequest], bytes],
    **says: object,
) -> Hostile:
    """Return a case whose manifest has these bytes, with the right length and hash."""

    def send(table: LoadedTable, producer: str) -> Sent:
        right = good(table, producer)
        line = json.loads(right.content[: right.body])
        manifest = content(table, right)
        line["manifests"][0] |= {"length": len(manifest), "hash": digest(manifest), **says}
        return Sent(right.request.inbox_key, json.dumps(line).encode() + b"\n" + manifest)

    return Hostile(name, reason, send)


def setting(path: str, value: object) -> Callable[[Document], None]:
    """Return a change of a member such as `producer.id` or `manifests.0.hash`; `...` removes it."""
    *folders, last = path.split(".")

    def change(document: Document) -> None:
        place: Any = document
        for folder in folders:
            # A line leaves out `needs` that say nothing.
            is_list = isinstance(place, list)
            place = place[int(folder)] if is_list else place.setdefault(folder, {})
        if value is ...:
            del place[last]
        else:
            place[last] = value

    return change


def short(value: object) -> str:
    """Return a name for a value that may be long."""
    text = ascii(value)
    return text if len(text) <= 40 else f"{text[:37]}… ({len(text)})"


def settings(reason: Reason, values: Mapping[str, Iterable[object]]) -> Iterable[Hostile]:
    """Yield one case for each value of each member."""
    for path, wrong in values.items():
        for value in wrong:
            name = f"{path} = {'absent' if value is ... else short(value)}"
            yield changed_line(name, reason, setting(path, value))
