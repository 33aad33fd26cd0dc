"""Lines that hold so many keys, values or levels that validating them takes all memory or time.

Each is a valid request with one member more. A worker process reads most of them; the large
requests of others wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from committer.ports.pointer_swap import LoadedTable
from committer.reason import Reason
from committer.request.request_format import EncodedRequest, seal_request
from tests.corpus.hostile import Hostile, changed_bytes
from tests.support.builders.bad_requests import file_of, inline_document
from tests.support.builders.request_builders import build_line

NEIGHBOR_FILES = 300


def _members(count: int, value: bytes = b"1") -> bytes:
    return b",".join(b'"k%d":%b' % (number, value) for number in range(count))


def _list(element: bytes, count: int) -> bytes:
    return b"[" + b",".join([element] * count) + b"]"


# A member of the line, built when it is played: together they have 40 MB.
MEMBERS: Mapping[str, tuple[Reason, Callable[[], bytes]]] = {
    **{
        f"{count:,} unknown keys": (Reason.REQUEST_MALFORMED, partial(_members, count))
        for count in (3_000, 100_000, 250_000)
    },
    "200,000 unknown keys of the producer's": (
        Reason.JSON_KEY_REPEATED,
        lambda: b'"producer":{"id":"other",' + _members(200_000) + b"}",
    ),
    "200,000 unknown keys of the needs'": (
        Reason.REQUEST_MALFORMED,
        lambda: b'"needs":{' + _members(200_000) + b"}",
    ),
    "700,000 nulls as files": (
        Reason.REQUEST_MALFORMED,
        lambda: b'"files":' + _list(b"null", 700_000),
    ),
    "a million empty files": (
        Reason.REQUEST_TOO_LARGE,
        lambda: b'"files":' + _list(b"{}", 1_000_000),
    ),
    "30,000 empty files": (
        Reason.REQUEST_MALFORMED,
        lambda: b'"files":' + _list(b"{}", 30_000),
    ),
    "a million texts as removed files": (
        Reason.REQUEST_MALFORMED,
        lambda: b'"needs":{"removed-data-files":' + _list(b'""', 1_000_000) + b"}",
    ),
    "200,000 numbers in the summary": (
        Reason.REQUEST_MALFORMED,
        lambda: b'"summary":{' + _members(200_000) + b"}",
    ),
    "200,000 numbers as properties": (
        Reason.REQUEST_MALFORMED,
        lambda: b'"changes":[{"action":"set-properties","updates":{' + _members(200_000) + b"}}]",
    ),
    "300,000 times the epoch": (
        Reason.JSON_KEY_REPEATED,
        lambda: b",".join([b'"epoch":0'] * 300_000),
    ),
    "300,000 times a key of a file": (
        Reason.JSON_KEY_REPEATED,
        lambda: b'"files":[{' + b",".join([b'"content":"data"'] * 200_000) + b"}]",
    ),
    "a list in a list, 19 deep, 100,000 times": (
        Reason.REQUEST_TOO_LARGE,
        lambda: b'"files":[{"a":' + _list(b"[" * 19 + b"]" * 19, 100_000) + b"}]",
    ),
    "two million lists in one another": (
        Reason.REQUEST_TOO_LARGE,
        lambda: b'"files":[{"a":' + b"[" * 2_000_000 + b"]" * 2_000_000 + b"}]",
    ),
    "300,000 lists in one another": (
        Reason.REQUEST_MALFORMED,
        lambda: b'"files":[{"a":' + b"[" * 300_000 + b"]" * 300_000 + b"}]",
    ),
    "1,000 numbers of 4,000 digits as files": (
        Reason.REQUEST_MALFORMED,
        lambda: b'"files":' + _list(b"9" * 4_000, 1_000),
    ),
    "a number of 4,000,000 digits": (
        Reason.REQUEST_MALFORMED,
        lambda: b'"not-after-ms":' + b"9" * 4_000_000,
    ),
    "two million numbers in a filter": (
        Reason.REQUEST_MALFORMED,
        lambda: b'"needs":{"conflict-filter":{"a":' + _list(b"7", 2_000_000) + b"}}",
    ),
    "a text of 4 MB": (Reason.REQUEST_MALFORMED, lambda: b'"key-id":"' + b"x" * 4_000_000 + b'"'),
    "a key of 4 MB": (Reason.REQUEST_MALFORMED, lambda: b'"' + b"x" * 4_000_000 + b'":1'),
}


def with_member(member: Callable[[], bytes], content: bytes) -> bytes:
    """Return the request with one member more at the end of its line."""
    line, _, body = content.partition(b"\n")
    return line[:-1] + b"," + member() + b"}\n" + body


POISON: tuple[Hostile, ...] = tuple(
    replace(changed_bytes(name, reason, partial(with_member, member)), has_large_neighbor=True)
    for name, (reason, member) in MEMBERS.items()
)


def large_neighbor(table: LoadedTable, producer: str) -> EncodedRequest:
    """Build a valid request that a worker process reads and checks: its files are in its line."""
    line = build_line(table, producer=producer)
    path = file_of(table, line).file_path
    document = inline_document(table, line)
    files = tuple(
        document | {"file-path": path.replace("00000-", f"{number:05d}-")}
        for number in range(NEIGHBOR_FILES)
    )
    return seal_request(line.model_copy(update={"files": files}))
