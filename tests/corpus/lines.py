"""Lines that are not what the schema says: types, lengths, numbers, texts, and JSON itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from uuid import UUID

from committer.ports.pointer_swap import LoadedTable
from committer.reason import Reason
from committer.request.attempt import attempt_of
from committer.request.commit_request import CommitRequest
from committer.request.request_format import LINE_BYTES_MAX
from tests.corpus.hostile import (
    Hostile,
    Sent,
    changed_bytes,
    changed_line,
    replaced,
    setting,
    settings,
)
from tests.support.builders.bad_requests import entry, file_of, hand_over
from tests.support.builders.request_builders import build_line, seal

_NIL = "00000000-0000-0000-0000-000000000000"
_NO_INTEGERS = ("1", 1.5, True, None, [1], {"a": 1}, -1, 2**63, 10**400)
_NO_TEXTS: tuple[object, ...] = (7, None, True, [], {}, "")
_UNPRINTABLE = ("\0", "a\nb", "\x1b[31m", "\x7f", "\u202egnp", "\u200b", "\u2028", "\ufeff", "\x85")

TYPES = tuple(
    settings(
        Reason.REQUEST_MALFORMED,
        {
            "catalog": (..., *_NO_TEXTS, "x" * 256, *_UNPRINTABLE),
            "table": (..., "db.flights", None, [], {}, 5),
            "table.namespace": (..., [], "db", [""], [5], None, ["x"] * 17, ["a\0"], [["db"]]),
            "table.name": (..., *_NO_TEXTS, "x" * 300),
            "table.Name": ("flights",),
            "table-uuid": (..., "", "flights", 7, None, f"{_NIL}0", f"{_NIL[:-1]}g", "\u0660" * 32),
            "branch": (*_NO_TEXTS, "x" * 256, "a\tb"),
            "producer": (..., "query", None, [], {}),
            "producer.id": (*_NO_TEXTS, ".", "..", "x" * 256, "/" * 70, "é" * 70, *_UNPRINTABLE),
            "producer.sequential": ("true", 1, None, []),
            "producer.one-shot": ("no", 0, True),
            "producer.one_shot": (True,),
            "producer.admin": (True,),
            "epoch": (..., *_NO_INTEGERS),
            "nonce": (..., None, 5, "", "x", "a" * 36),
            "attempt": (..., None, 5, "", "x", "a" * 36),
            "fingerprint": (..., "value", None, {}, {"kind": "a"}, {"value": "a"}),
            "fingerprint.kind": ("", "Spark", "a b", "x" * 41, 5, None, "kind\n"),
            "fingerprint.value": ("x" * 129, 5, None, "a\0b", "\u202e"),
            "published-at-ms": (..., *_NO_INTEGERS),
            "operation": (
                *("drop", "", "APPEND", None, 5, "append ", "replace", "overwrite_partitions"),
                *("delete", "rewrite-files", "rewrite-manifests", "cherry-pick", "alter"),
            ),
            "needs": ("", [], {"a": 1}, 5),
            "needs.base-snapshot-id": (-1, "1", True, 1.0),
            "needs.isolation-level": ("none", "", 5),
            "needs.base-sequence-number": (-1, "1", True, 1.0, 2**63),
            "needs.on-conflict": ("ignore", "discard", None),
            "needs.removed-data-files": ("x", [""], [5], ["x" * 4097], None, ["a", "a"], ["a"]),
            "needs.removed-delete-files": ({}, ["x"], [{}], [{"file-path": "a"}]),
            "needs.removed-paths": (["a"],),
            "needs.referenced-data-files": ("x", [None], ["a"]),
            "needs.row-filter": ("x", 5, [], True, {"type": "true"}),
            "needs.conflict-filter": ("x", 5, [], True, {"type": "true"}),
            "needs.case-sensitive": (0, "no", False),
            "needs.data-sequence-number": (-1, "1", 1),
            "needs.groups": ({}, [{}], [{"removed-data-files": ["a"]}]),
            "needs.updates-rows": (1, True),
            "needs.append-only": (1, True),
            "needs.added-files-match-filter": (1, True),
            "needs.source-snapshot-id": (-1, 1),
            "needs.wap-id": ("", "a\0", "x" * 256, "a"),
            "stage-only": ("no", 1),
            "create-branch": ("no", 1),
            "summary": ([], "x", {"": "a"}, {"a": 1}, {"a": None}, {"frazil.epochs": "1"}),
            "changes": ({}, None, "x", [5], [{}], [{"action": "drop-table"}]),
            "adopt-existing": ("false", 0, None),
            "transaction": ({}, [], "x", 5, {"id": "x", "tables": []}, {"id": _NIL, "tables": []}),
            "signature": ("hmac-sha256:00", 5, "", "x" * 1025),
            "key-id": ("key", ""),
            "not-after-ms": (1, "1", -1),
            "manifests": (..., None, {}, "x", [None], [[]], [{}], ["x"]),
            "manifests.0.content": (..., "equality", 5, None, "DATA", "deletes"),
            "manifests.0.partition-spec-id": (..., -1, "0", True, None, 1.0),
            "manifests.0.length": (..., 0, -1, "5", 1.0, 2**62, None),
            "manifests.0.added-files-count": (..., -1, "1", True, 1e3, 2**63, None),
            "manifests.0.added-rows-count": (..., -1, "1", None, 2**64),
            "manifests.0.hash": (..., "", "0" * 64, f"blake2b-256:{'A' * 64}", "sha256:00", None),
            "manifests.0.offset": (..., 1, -1, "0", 2**62, 2**63, True),
            "manifests.0.path": ("memory://warehouse/db/flights/metadata/x.avro", "", 5),
            "manifests.0.codec": ("null",),
            "files": ({}, None, "x", [5], [None], ["x"], [[]]),
            "files-count": (1,),
            "request_version": (1,),
            "request-Version": (1,),
            "__proto__": ({"admin": True},),
        },
    )
)

VERSIONS = (
    *settings(
        Reason.REQUEST_VERSION_UNKNOWN,
        {"request-version": (0, 2, -1, 10**18, "1", 1.5, True, None, "latest", 1.0)},
    ),
    changed_line(
        "request-version = absent", Reason.REQUEST_MALFORMED, setting("request-version", ...)
    ),
    # A later version may have any other shape; that it is one is what an operator must know.
    changed_line(
        "a later version with unknown keys",
        Reason.REQUEST_VERSION_UNKNOWN,
        lambda line: line | {"request-version": 3, "mode": "x"},
    ),
)


def _instead(text: bytes, _: bytes) -> bytes:
    return text


def _without_end(count: int, content: bytes) -> bytes:
    return content[:-count]


def _tower(levels: int) -> str:
    """Return a filter of `not` in `not`."""
    return '{"type":"not","child":' * levels + "true" + "}" * levels


JSON = (
    *(
        changed_bytes(
            f"instead of it: {name}",
            Reason.REQUEST_MALFORMED,
            partial(_instead, text + b"\n"),
        )
        for name, text in {
            "nothing": b"",
            "a space": b" ",
            "a number": b"5",
            "a list": b"[]",
            "an object": b"{}",
            "null": b"null",
            "NUL bytes": b"\0" * 1_000,
            "half an object": b'{"request-version":1,',
            "no UTF-8": b'{"request-version":1,"catalog":"\xff\xfe"}',
            "an overlong slash": b'{"request-version":1,"catalog":"\xc0\xaf"}',
            "a lone surrogate": b'{"request-version":1,"catalog":"\\ud800"}',
            "an encoded surrogate": b'{"request-version":1,"catalog":"\xed\xa0\x80"}',
            "single quotes": b"{'request-version':1}",
            "comments": b'{/* */"request-version":1}',
            "brackets": b"[" * 100_000,
            "objects in objects": b'{"a":' * 100_000,
            "a number without end": b'{"request-version":1,"epoch":' + b"9" * 100_000 + b"}",
            "an exponent": b'{"request-version":1,"epoch":1e999999999}',
            "two lines in one": b'{"request-version":1}\r{"request-version":1}',
            "XML": b"<?xml version='1.0'?><!DOCTYPE r [<!ENTITY a 'b'>]><r>&a;</r>",
            "YAML": b"!!python/object/apply:os.system ['true']",
            "a pickle": b"\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00K\x05.",
            "gzip": b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03",
            "ten thousand keys": b"{" + b",".join(b'"%d":0' % n for n in range(10_000)) + b"}",
            "a key of a megabyte": b'{"request-version":1,"' + b"k" * 2**20 + b'":1}',
        }.items()
    ),
    changed_bytes(
        "a byte order mark", Reason.REQUEST_MALFORMED, lambda all_: b"\xef\xbb\xbf" + all_
    ),
    changed_bytes(
        "UTF-16",
        Reason.REQUEST_MALFORMED,
        lambda all_: all_.partition(b"\n")[0].decode().encode("utf-16-le") + b"\n",
    ),
    replaced("a comma too many", Reason.REQUEST_MALFORMED, '"epoch":0', '"epoch":0,,"a":0'),
    replaced("NaN", Reason.REQUEST_MALFORMED, '"epoch":0', '"epoch":NaN'),
    replaced("Infinity", Reason.REQUEST_MALFORMED, '"epoch":0', '"epoch":-Infinity'),
    replaced("a hexadecimal number", Reason.REQUEST_MALFORMED, '"epoch":0', '"epoch":0x0'),
    replaced("an octal number", Reason.REQUEST_MALFORMED, '"epoch":0', '"epoch":00'),
    replaced("an epoch of 0.0", Reason.REQUEST_MALFORMED, '"epoch":0', '"epoch":0.0'),
    replaced("a raw control character", Reason.REQUEST_MALFORMED, '"frazil"', '"fra\x01zil"'),
    replaced(
        "NaN in a filter",
        Reason.REQUEST_MALFORMED,
        '"epoch":0',
        '"epoch":0,"needs":{"conflict-filter":{"type":"eq","term":"id","value":NaN}}',
    ),
    *(
        replaced(f"said twice: {name}", Reason.JSON_KEY_REPEATED, old, new)
        for name, (old, new) in {
            "an epoch": ('"epoch":0', '"epoch":0,"epoch":7'),
            "an epoch, and then the right one": ('"epoch":0', '"epoch":7,"epoch":0'),
            "an epoch, spaced": ('"epoch":0', '"epoch" :0,"epoch" :0'),
            "an epoch, escaped": ('"epoch":0', '"epoch":0,"\\u0065poch":0'),
            "an operation": ('"epoch":0', '"epoch":0,"operation":"drop","operation":"append"'),
            "a table": ('"table":{', '"table":{"namespace":["a"],"name":"b"},"table":{'),
            "a table's name": ('"name":"flights"', '"name":"other","name":"flights"'),
            "a producer's id": ('"producer":{', '"producer":{"id":"other",'),
            "a manifest's length": ('"length":', '"length":1,"length":'),
            "the manifests": ('"manifests":[', '"manifests":[],"manifests":['),
        }.items()
    ),
    *(
        replaced(
            f"a filter of {levels} levels",
            Reason.REQUEST_MALFORMED,
            '"epoch":0',
            f'"epoch":0,"needs":{{"conflict-filter":{_tower(levels)}}}',
        )
        for levels in (200, 5_000, 100_000)
    ),
    replaced(
        "a filter that is a list of lists",
        Reason.REQUEST_MALFORMED,
        '"epoch":0',
        '"epoch":0,"needs":{"conflict-filter":{"a":' + "[" * 50_000 + "]" * 50_000 + "}}",
    ),
)

KEYS = (
    replaced("another epoch than its key", Reason.REQUEST_KEY_MISMATCH, '"epoch":0', '"epoch":1'),
    replaced("minus nothing", Reason.REQUEST_MALFORMED, '"epoch":0', '"epoch":-'),
    *settings(
        Reason.REQUEST_KEY_MISMATCH,
        {
            "producer.id": ("query-1", "someone else", "bad ", "BAD", "%62ad", "ｂａｄ"),
            "attempt": (_NIL, "ffffffff-ffff-ffff-ffff-ffffffffffff"),
            "table-uuid": (_NIL,),
            "epoch": (1, 2**63 - 1),
        },
    ),
)

LENGTHS = (
    changed_bytes("empty", Reason.REQUEST_TRUNCATED, lambda _: b""),
    changed_bytes(
        "no newline", Reason.REQUEST_TRUNCATED, lambda all_: all_.partition(b"\n")[0][:-1]
    ),
    changed_bytes(
        "no newline within the limit",
        Reason.REQUEST_TOO_LARGE,
        lambda _: b" " * (LINE_BYTES_MAX + 1),
    ),
    changed_bytes(
        "carriage returns for newlines",
        Reason.REQUEST_TRUNCATED,
        lambda all_: all_.partition(b"\n")[0] + b"\r",
    ),
    changed_bytes("one byte more", Reason.REQUEST_MALFORMED, lambda all_: all_ + b"\0"),
    changed_bytes("twice in one object", Reason.REQUEST_MALFORMED, lambda all_: all_ + all_),
    changed_bytes(
        "a newline more", Reason.REQUEST_MALFORMED, lambda all_: all_.replace(b"\n", b"\n\n", 1)
    ),
    *(
        changed_bytes(
            f"{count} bytes short", Reason.REQUEST_TRUNCATED, partial(_without_end, count)
        )
        for count in (1, 16, 100)
    ),
    changed_bytes(
        "the line alone", Reason.REQUEST_TRUNCATED, lambda all_: all_.partition(b"\n")[0] + b"\n"
    ),
    changed_bytes(
        "a bit of the manifest turned",
        Reason.HASH_MISMATCH,
        lambda all_: all_[:-1] + bytes([all_[-1] ^ 1]),
    ),
    changed_line(
        "the hash of something else",
        Reason.HASH_MISMATCH,
        setting("manifests.0.hash", f"blake2b-256:{'0' * 64}"),
    ),
    changed_line(
        "one manifest named twice",
        Reason.REQUEST_MALFORMED,
        lambda line: line | {"manifests": line["manifests"] * 2},
    ),
    changed_line(
        "ten thousand and one manifests",
        Reason.REQUEST_MALFORMED,
        lambda line: line | {"manifests": line["manifests"] * 10_001},
    ),
    changed_line(
        "manifests that overlap",
        Reason.REQUEST_MALFORMED,
        lambda line: (
            line | {"manifests": [line["manifests"][0], line["manifests"][0] | {"offset": 10}]}
        ),
    ),
)


def _claimed(claim: Callable[[CommitRequest], UUID], table: LoadedTable, producer: str) -> Sent:
    """Build a request that is valid except that it claims to be another attempt."""
    line = build_line(table, producer=producer)
    line = line.model_copy(update={"attempt": claim(line)})
    return Sent.of(seal(line, [hand_over(table, entry(file_of(table, line)))]))


# Each lies under the key that its own line says.
ATTEMPTS = (
    *settings(
        Reason.ATTEMPT_MISMATCH,
        {"nonce": (_NIL, "ffffffff-ffff-ffff-ffff-ffffffffffff"), "branch": ("audit",)},
    ),
    *(
        Hostile(f"the attempt {name}", Reason.ATTEMPT_MISMATCH, partial(_claimed, claim))
        for name, claim in {
            "of another producer": lambda one: attempt_of(
                one.table_uuid, "main", "query-1", one.epoch, one.nonce
            ),
            "of another epoch": lambda one: attempt_of(
                one.table_uuid, "main", one.producer.id, one.epoch + 1, one.nonce
            ),
            "of another branch": lambda one: attempt_of(
                one.table_uuid, "audit", one.producer.id, one.epoch, one.nonce
            ),
            "of another table": lambda one: attempt_of(
                UUID(_NIL), "main", one.producer.id, one.epoch, one.nonce
            ),
            "that is its nonce": lambda one: one.nonce,
            "that is drawn": lambda one: UUID("0d6f8e1c-5b0f-4c0e-9a53-6f1d2b3c4d5e"),
        }.items()
    ),
)

LINES: tuple[Hostile, ...] = (*TYPES, *VERSIONS, *JSON, *KEYS, *LENGTHS, *ATTEMPTS)
