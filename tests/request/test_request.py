"""The commit request on the wire: what any client may write, and every way to get it wrong."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote
from uuid import UUID, uuid5

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from committer.errors import InvalidRequestError
from committer.iceberg.values.json_reader import count_keys, keys_repeated, keys_written
from committer.reason import Reason
from committer.request import request_format
from committer.request.attempt import attempt_of
from committer.request.commit_request import EPOCH_MAX, CommitRequest
from committer.request.request_format import (
    LINE_BYTES_MAX,
    EncodedRequest,
    InlineManifest,
    digest,
    inline_references,
    read_request,
    seal_request,
)
from committer.request.request_key import inbox_key, is_inbox_key, parse_inbox_key
from committer.request.table_identifier import TableIdentifier

TABLE = UUID("7f9c1c1e-60a6-4b39-9d2b-6f6f0b8c1d11")
NONCE = UUID("0d6f8e1c-5b0f-4c0e-9a53-6f1d2b3c4d5e")
# The format is durable: this value never changes.
ATTEMPT = UUID("7d77e23b-f475-56d3-9110-a27a30ebd02f")
MANIFESTS = (b"first manifest", b"the second")


def blake2b(content: bytes) -> str:
    return "blake2b-256:" + hashlib.blake2b(content, digest_size=32).hexdigest()


def reference(manifest: bytes, offset: int, /, **changes: object) -> dict[str, object]:
    return {
        "content": "data",
        "partition-spec-id": 0,
        "length": len(manifest),
        "added-files-count": 2,
        "added-rows-count": 30,
        "hash": blake2b(manifest),
        "offset": offset,
        **changes,
    }


def attempt_by_hand(branch: object, producer: object, epoch: object, nonce: object) -> str:
    """Compute an attempt by RFC 9562, version 5, with nothing but a hash."""
    name = f"{branch}\n{producer}\n{epoch}\n{nonce}"
    hashed = bytearray(hashlib.sha1(TABLE.bytes + name.encode()).digest()[:16])
    hashed[6] = hashed[6] & 0x0F | 0x50
    hashed[8] = hashed[8] & 0x3F | 0x80
    return str(UUID(bytes=bytes(hashed)))


def line(**changes: Any) -> dict[str, object]:
    """Return a line as a client in any language writes it, with only JSON and two hashes."""
    producer: dict[str, object] = {"id": "query-1", "sequential": True}
    found: dict[str, Any] = {"branch": "main", "producer": producer, "epoch": 41} | changes
    known = found["producer"] if isinstance(found["producer"], dict) else {}
    return {
        "request-version": 1,
        "catalog": "lake",
        "table": {"namespace": ["db"], "name": "flights"},
        "table-uuid": str(TABLE),
        "producer": producer,
        "epoch": 41,
        "nonce": str(NONCE),
        "attempt": attempt_by_hand(found["branch"], known.get("id"), found["epoch"], NONCE),
        "fingerprint": {"kind": "spark-offsets", "value": "0123456789abcdef"},
        "published-at-ms": 1_800_000_000_000,
        "manifests": [reference(MANIFESTS[0], 0), reference(MANIFESTS[1], len(MANIFESTS[0]))],
        **changes,
    }


def by_hand(document: object, *body: bytes) -> bytes:
    return json.dumps(document).encode() + b"\n" + b"".join(body)


def refusal(content: bytes, *, key: str | None = None) -> InvalidRequestError:
    with pytest.raises(InvalidRequestError) as caught:
        read_request(content, key=key)
    return caught.value


def without(document: Mapping[str, object], name: str) -> dict[str, object]:
    return {key: value for key, value in document.items() if key != name}


# --- Accepted requests ---------------------------------------------------------------------------


def test_a_request_made_by_hand_is_read() -> None:
    sealed = read_request(by_hand(line(), *MANIFESTS))
    request = sealed.request
    assert (request.catalog, request.identifier) == ("lake", TableIdentifier(("db",), "flights"))
    assert (request.table_uuid, request.attempt, request.epoch) == (TABLE, ATTEMPT, 41)
    assert request.producer.sequential
    assert not (request.producer.ordered or request.producer.one_shot)
    assert (request.branch, request.operation, request.adopt_existing) == ("main", "append", False)
    assert [bytes(sealed.manifest(one)) for one in request.manifests] == list(MANIFESTS)
    assert request.inbox_key == f"{TABLE}/query-1/00000000000000000041/{ATTEMPT}"


def test_every_field_is_read_as_it_is_written() -> None:
    document = line(
        branch="audit",
        operation="row-delta",
        needs={
            "base-snapshot-id": 7,
            "conflict-filter": {"type": "eq", "term": "carrier", "value": None},
            "isolation-level": "snapshot",
            "removed-data-files": ["s3://b/a.parquet"],
            "on-conflict": "fail",
        },
        signature="c2ln",
        summary={"wap.id": "a"},
        files=[{"spec-id": 0, "partition": [None, 1.5], "nested": {"deep": [None]}}],
    ) | {"stage-only": True, "key-id": "k1"}
    request = read_request(by_hand(document, *MANIFESTS)).request
    assert (request.branch, request.operation) == ("audit", "row-delta")
    assert (request.stage_only, request.summary) == (True, {"wap.id": "a"})
    assert request.needs.base_snapshot_id == 7
    assert request.needs.conflict_filter == {"type": "eq", "term": "carrier", "value": None}
    assert request.needs.isolation_level == "snapshot"
    assert request.needs.removed_data_files == ("s3://b/a.parquet",)
    assert request.needs.on_conflict == "fail"
    assert (request.signature, request.key_id) == ("c2ln", "k1")
    assert request.files == ({"spec-id": 0, "partition": [None, 1.5], "nested": {"deep": [None]}},)
    # Sealing writes the same line again: nothing is lost on the way, nulls inside files neither.
    sealed = seal_request(request, inline(*MANIFESTS))
    assert read_request(sealed.content).request == sealed.request
    assert sealed.request.files == request.files


def inline(*contents: bytes) -> list[InlineManifest]:
    return [InlineManifest(content, "data", 0, 2, 30) for content in contents]


def sealed_request() -> EncodedRequest:
    manifests = inline(*MANIFESTS)
    base = read_request(by_hand(line(), *MANIFESTS)).request
    named = base.model_copy(update={"manifests": inline_references(manifests)})
    return seal_request(named, manifests)


def test_a_sealed_request_is_read_back_equal_and_under_its_key() -> None:
    sealed = sealed_request()
    read = read_request(sealed.content, key=sealed.request.inbox_key)
    assert read == sealed
    assert read.request.manifests[1].offset == len(MANIFESTS[0])
    assert digest(MANIFESTS[0]) == read.request.manifests[0].hash == blake2b(MANIFESTS[0])


REPEATED = {
    "a key": ('"epoch": 41', '"epoch": 7, "epoch": 41'),
    "a key with an equal value": ('"epoch": 41', '"epoch": 41, "epoch": 41'),
    "a key with space behind it": ('"epoch": 41', '"epoch" : 41, "epoch"\t: 41'),
    "a key written with an escape": ('"epoch": 41', '"epo\\u0063h": 41, "epoch": 41'),
    "a key of an object below": ('"name": "flights"', '"name": "x", "name": "flights"'),
    "an object": ('"producer": {', '"producer": {"id": "x"}, "producer": {'),
    "a key of a manifest": ('"offset": 0', '"offset": 0, "offset": 0'),
    "a key of a filter": (
        '"epoch": 41',
        '"epoch": 41, "operation": "overwrite", "needs": {"row-filter": {"a": 1, "a": 2}}',
    ),
    "a key of a file": ('"epoch": 41', '"epoch": 41, "files": [{"a": [{"b": 1, "b": 1}]}]'),
    "one that a text hides": (
        '"epoch": 41',
        '"epoch" : 41, "epoch" : 41, "branch": ":"',
    ),
}


@pytest.mark.parametrize("name", REPEATED)
def test_a_key_that_is_given_twice_is_refused(name: str) -> None:
    text = json.dumps(line())
    old, new = REPEATED[name]
    assert text.count(old) == 1
    error = refusal(text.replace(old, new).encode() + b"\n" + b"".join(MANIFESTS))
    assert error.reason == Reason.JSON_KEY_REPEATED


def test_no_escaped_colon_hides_a_key_that_is_given_twice() -> None:
    text = json.dumps(line()).replace('"epoch": 41', '"epoch": 7, "epoch": 41')
    hidden = text.replace("blake2b-256:", "blake2b-256\\u003a", 1)
    assert hidden.count(":") == json.dumps(line()).count(":")
    error = refusal(hidden.encode() + b"\n" + b"".join(MANIFESTS))
    assert error.reason == Reason.JSON_KEY_REPEATED


@pytest.mark.parametrize(
    "text", ['":', '\\":', "a\\\\", '\\\\":{', " :", '":"x":', '{"a":1,"a":1}', "\\"]
)
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" , ", " : ")])
def test_no_text_looks_like_a_repeated_key(text: str, separators: tuple[str, str]) -> None:
    files = [{text: text, f"{text}2": [{text: [text, {text: None}]}]}]
    document = line(files=files, fingerprint={"kind": "a", "value": text})
    content = json.dumps(document, separators=separators).encode() + b"\n" + b"".join(MANIFESTS)
    assert read_request(content).request.files == tuple(files)


def _pairs(keys: list[str]) -> Callable[[list[tuple[str, object]]], object]:
    def collect(pairs: list[tuple[str, object]]) -> object:
        keys.extend(key for key, _ in pairs)
        return dict(pairs)

    return collect


_TEXTS = st.text('"\\:{,é ')


@pytest.mark.thorough
@given(st.recursive(_TEXTS, lambda inner: st.dictionaries(_TEXTS, inner) | st.lists(inner)))
def test_as_many_keys_are_written_as_a_parser_meets(document: object) -> None:
    keys: list[str] = []
    text = json.dumps([document, document])
    json.loads(text, object_pairs_hook=_pairs(keys))
    assert keys_written(text.encode()) == len(keys)


class _Pairs(list[tuple[str, object]]):
    """An object as it is written, perhaps with a key twice."""


def _written(document: object, *, ascii_only: bool) -> str:
    if isinstance(document, _Pairs):
        pairs = [f"{json.dumps(key)}: {_written(v, ascii_only=ascii_only)}" for key, v in document]
        return "{" + ", ".join(pairs) + "}"
    if isinstance(document, list):
        return "[" + ",".join(_written(one, ascii_only=ascii_only) for one in document) + "]"
    return json.dumps(document, ensure_ascii=ascii_only)


def _texts(document: object) -> Iterator[str]:
    if isinstance(document, str):
        yield document
    elif isinstance(document, list):
        for one in document:
            yield from _texts(one)
    elif isinstance(document, dict):
        for key, one in document.items():
            yield from _texts([key, one])


_KEYS = st.text('a:"é', max_size=2)
_DOCUMENTS = st.recursive(
    _KEYS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.lists(st.tuples(_KEYS, inner), max_size=4).map(_Pairs)
    ),
)


@given(_DOCUMENTS, st.booleans(), st.data())
def test_repeated_keys_are_counted_whatever_is_known_of_colons(
    document: object, ascii_only: bool, data: st.DataObject
) -> None:
    text = _written(document, ascii_only=ascii_only)
    keys: list[str] = []
    json.loads(text, object_pairs_hook=_pairs(keys))
    kept = json.loads(text)
    colons = sum(one.count(":") for one in _texts(kept))
    known = data.draw(st.integers(0, colons))
    # A value that is dropped takes its own keys along.
    dropped = len(keys) - count_keys(kept)
    assert keys_repeated(text.encode(), count_keys(kept), known) == dropped


def test_a_table_name_is_read_and_printed() -> None:
    assert TableIdentifier.parse("a.b.c") == TableIdentifier(("a", "b"), "c")
    assert str(TableIdentifier(("a", "b"), "c")) == "a.b.c"
    for text in ("", "flights", ".flights", "db.", "db..flights", "."):
        with pytest.raises(ValueError):
            TableIdentifier.parse(text)


# --- Fields --------------------------------------------------------------------------------------

REQUIRED = (
    "request-version",
    "catalog",
    "table",
    "table-uuid",
    "producer",
    "epoch",
    "nonce",
    "attempt",
    "fingerprint",
    "published-at-ms",
)


@pytest.mark.parametrize("name", REQUIRED)
def test_a_missing_field_is_named(name: str) -> None:
    error = refusal(by_hand(without(line(), name), *MANIFESTS))
    assert error.reason == Reason.REQUEST_MALFORMED
    assert name in str(error)


WRONG: dict[str, dict[str, object]] = {
    "text for an epoch": {"epoch": "41"},
    "true for an epoch": {"epoch": True},
    "a fraction for an epoch": {"epoch": 41.5},
    "an epoch below zero": {"epoch": -1},
    "an epoch beyond 63 bits": {"epoch": EPOCH_MAX + 1},
    "a huge epoch": {"epoch": 10**400},
    "no uuid": {"table-uuid": "flights"},
    "a number for a uuid": {"attempt": 5},
    "a number for a nonce": {"nonce": 5},
    "a nonce that is no uuid": {"nonce": "run-1"},
    "an empty namespace": {"table": {"namespace": [], "name": "t"}},
    "a namespace of text": {"table": {"namespace": "db", "name": "t"}},
    "an empty name": {"table": {"namespace": ["db"], "name": ""}},
    "a control character": {"table": {"namespace": ["db"], "name": "a\nb"}},
    "an empty catalog": {"catalog": ""},
    "a null catalog": {"catalog": None},
    "a long branch": {"branch": "b" * 256},
    "an operation that is none": {"operation": "upsert"},
    "a fingerprint kind in capitals": {"fingerprint": {"kind": "Spark", "value": "x"}},
    "a long fingerprint": {"fingerprint": {"kind": "x", "value": "y" * 129}},
    "a signature without its key": {"signature": "x"},
    "a key without its signature": {"key-id": "x"},
    "nothing to do": {"manifests": []},
    "an unknown key": {"surprise": 1},
    "an unknown key below": {"producer": {"id": "q", "surprise": 1}},
    "a key in our own spelling": {"published_at_ms": 5},
    "a one-shot producer whose nonce tells no time": {"producer": {"id": "q", "one-shot": True}},
    "sequential and one-shot": {"producer": {"id": "q", "sequential": True, "one-shot": True}},
    "a negative time": {"published-at-ms": -1},
    "manifests that are none": {"manifests": "x"},
    "files that are none": {"files": [1]},
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_field_is_refused(name: str) -> None:
    error = refusal(by_hand(line(**WRONG[name]), *MANIFESTS))
    assert error.reason == Reason.REQUEST_MALFORMED
    assert str(error)


@pytest.mark.parametrize(
    "identity", ["", ".", "..", "a\tb", "a\0b", "q" * 201, "ü" * 34, "\u202e", "a\u2028b"]
)
def test_a_producer_id_that_is_no_path_segment_is_refused(identity: str) -> None:
    error = refusal(by_hand(line(producer={"id": identity}), *MANIFESTS))
    assert error.reason == Reason.REQUEST_MALFORMED


@pytest.mark.parametrize("identity", ["ü", "a/b", "...", "a%2Fb", "日本", "q" * 200, "a b", "../x"])
def test_any_other_producer_id_stays_below_its_table(identity: str) -> None:
    sealed = read_request(by_hand(line(producer={"id": identity}), *MANIFESTS))
    key = sealed.request.inbox_key
    assert key.count("/") == 3
    assert key.split("/")[1] == quote(identity, safe="")
    assert parse_inbox_key(key).producer == identity
    assert read_request(sealed.content, key=key) == sealed


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
@pytest.mark.parametrize("place", ['{"x": %s}', '{"x": [{"y": %s}]}'])
def test_numbers_that_json_does_not_have_are_refused(number: str, place: str) -> None:
    for field in ("files", "needs"):
        document = line(**{field: "HERE"})
        value = f"[{place}]" if field == "files" else '{"conflict-filter": ' + place + "}"
        text = json.dumps(document).replace('"HERE"', value % number)
        assert refusal(text.encode() + b"\n").reason == Reason.REQUEST_MALFORMED


# --- Attempts ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"attempt": str(UUID(int=1))},
        {"attempt": str(NONCE)},
        {"attempt": attempt_by_hand("main", "query-2", 41, NONCE)},
        {"attempt": attempt_by_hand("main", "query-1", 42, NONCE)},
        {"attempt": attempt_by_hand("audit", "query-1", 41, NONCE)},
        {"attempt": attempt_by_hand("main", "query-1", 41, TABLE)},
        {"nonce": str(UUID(int=1))},
    ],
)
def test_an_attempt_that_is_another_requests_is_refused(change: Mapping[str, Any]) -> None:
    error = refusal(by_hand(line(**change), *MANIFESTS))
    assert error.reason == Reason.ATTEMPT_MISMATCH
    expected = attempt_by_hand("main", "query-1", 41, change.get("nonce", NONCE))
    assert f"expected {expected}" in str(error)


@pytest.mark.thorough
@given(st.uuids(), st.text(), st.text(), st.integers(0, 2**63 - 1), st.uuids())
def test_the_attempt_is_the_uuid_of_version_5(
    table_uuid: UUID, branch: str, producer: str, epoch: int, nonce: UUID
) -> None:
    expected = uuid5(table_uuid, "\n".join((branch, producer, str(epoch), str(nonce))))
    assert attempt_of(table_uuid, branch, producer, epoch, nonce) == expected


def test_an_attempt_of_another_table_is_refused() -> None:
    error = refusal(by_hand(line(**{"table-uuid": str(UUID(int=1))}), *MANIFESTS))
    assert error.reason == Reason.ATTEMPT_MISMATCH


# --- Versions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 2, 99, "1", None])
def test_another_version_is_named_whatever_else_it_brings(version: object) -> None:
    document = line(**{"request-version": version, "a-later-field": {"x": 1}})
    error = refusal(by_hand(document, *MANIFESTS))
    assert error.reason == Reason.REQUEST_VERSION_UNKNOWN


@pytest.mark.parametrize("version", [True, 1.0])
def test_what_is_only_equal_to_the_version_is_another(version: object) -> None:
    error = refusal(by_hand(line(**{"request-version": version}), *MANIFESTS))
    assert error.reason == Reason.REQUEST_VERSION_UNKNOWN


def test_a_version_in_a_text_is_not_the_version() -> None:
    document = line(catalog='"request-version": 9', surprise=1)
    assert refusal(by_hand(document, *MANIFESTS)).reason == Reason.REQUEST_MALFORMED


# --- Bytes ---------------------------------------------------------------------------------------


def test_a_request_that_is_cut_anywhere_is_refused() -> None:
    content = by_hand(line(), *MANIFESTS)
    for stop in range(len(content)):
        assert refusal(content[:stop]).reason == Reason.REQUEST_TRUNCATED


def test_a_flipped_bit_is_found_or_changes_nothing() -> None:
    sealed = read_request(by_hand(line(), *MANIFESTS))
    for position in range(sealed.body, len(sealed.content)):
        flipped = bytearray(sealed.content)
        flipped[position] ^= 1
        assert refusal(bytes(flipped)).reason == Reason.HASH_MISMATCH


def test_bytes_behind_the_last_manifest_are_refused() -> None:
    error = refusal(by_hand(line(), *MANIFESTS, b"x"))
    assert error.reason == Reason.REQUEST_MALFORMED


FIRST = len(MANIFESTS[0])
LAYOUTS: dict[str, tuple[list[dict[str, object]], Reason]] = {
    "a gap": (
        [reference(MANIFESTS[0], 0), reference(MANIFESTS[1], FIRST + 1)],
        Reason.REQUEST_MALFORMED,
    ),
    "an overlap": (
        [reference(MANIFESTS[0], 0), reference(MANIFESTS[1], FIRST - 1)],
        Reason.REQUEST_MALFORMED,
    ),
    "another order": (
        [reference(MANIFESTS[1], FIRST), reference(MANIFESTS[0], 0)],
        Reason.REQUEST_MALFORMED,
    ),
    "one twice": (
        [reference(MANIFESTS[0], 0), reference(MANIFESTS[0], 0)],
        Reason.REQUEST_MALFORMED,
    ),
    "a negative offset": ([reference(MANIFESTS[0], -1)], Reason.REQUEST_MALFORMED),
    "a length beyond the end": (
        [reference(MANIFESTS[0], 0), reference(MANIFESTS[1], FIRST, length=40_000_000)],
        Reason.REQUEST_TRUNCATED,
    ),
    "a length of nothing": ([reference(b"", 0)], Reason.REQUEST_MALFORMED),
    "neither offset nor path": (
        [without(reference(MANIFESTS[0], 0), "offset")],
        Reason.REQUEST_MALFORMED,
    ),
    "both offset and path": (
        [reference(MANIFESTS[0], 0, path="s3://b/m.avro")],
        Reason.REQUEST_MALFORMED,
    ),
    "another hash function": (
        [reference(MANIFESTS[0], 0, hash="sha256:" + "0" * 64)],
        Reason.REQUEST_MALFORMED,
    ),
    "a hash in capitals": (
        [reference(MANIFESTS[0], 0, hash=blake2b(MANIFESTS[0]).upper())],
        Reason.REQUEST_MALFORMED,
    ),
    "the hash of the other": (
        [
            reference(MANIFESTS[0], 0, hash=blake2b(MANIFESTS[1])),
            reference(MANIFESTS[1], FIRST),
        ],
        Reason.HASH_MISMATCH,
    ),
    "a negative count": (
        [reference(MANIFESTS[0], 0, **{"added-files-count": -1})],
        Reason.REQUEST_MALFORMED,
    ),
    "a content that is none": (
        [reference(MANIFESTS[0], 0, content="puffin")],
        Reason.REQUEST_MALFORMED,
    ),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_manifests_that_do_not_lie_as_the_line_says_are_refused(name: str) -> None:
    references, reason = LAYOUTS[name]
    assert refusal(by_hand(line(manifests=references), *MANIFESTS)).reason == reason


def test_manifests_by_path_take_no_bytes() -> None:
    named = without(reference(MANIFESTS[0], 0, path="s3://b/m.avro"), "offset")
    both = [named, reference(MANIFESTS[1], 0)]
    sealed = read_request(by_hand(line(manifests=both), MANIFESTS[1]))
    assert bytes(sealed.manifest(sealed.request.manifests[1])) == MANIFESTS[1]


def test_a_line_that_never_ends_is_refused_by_its_size() -> None:
    assert refusal(b'{"x":"' + b"a" * LINE_BYTES_MAX).reason == Reason.REQUEST_TOO_LARGE
    huge = by_hand(line(files=[{"x": "a" * LINE_BYTES_MAX}]))
    assert refusal(huge).reason == Reason.REQUEST_TOO_LARGE


@pytest.mark.parametrize("limited", ["REQUEST_BYTES_MAX", "LINE_BYTES_MAX"])
def test_a_request_is_sealed_up_to_the_size_that_is_read(
    limited: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = sealed_request().content
    size = len(content) if limited == "REQUEST_BYTES_MAX" else content.index(b"\n")
    monkeypatch.setattr(request_format, limited, size)
    assert read_request(sealed_request().content).content == content
    monkeypatch.setattr(request_format, limited, size - 1)
    assert refusal(content).reason == Reason.REQUEST_TOO_LARGE
    with pytest.raises(InvalidRequestError) as refused:
        sealed_request()
    assert refused.value.reason == Reason.REQUEST_TOO_LARGE


@pytest.mark.parametrize("depth", [100, 1_000, 100_000])
def test_deep_nesting_is_read_or_refused_and_never_crashes(depth: int) -> None:
    text = json.dumps(line(files=["HERE"]))
    nested = text.replace('"HERE"', '{"x":' + "[" * depth + "]" * depth + "}").encode() + b"\n"
    try:
        read_request(nested + b"".join(MANIFESTS))
    except InvalidRequestError as error:
        assert error.reason == Reason.REQUEST_MALFORMED


@pytest.mark.parametrize("content", [b"", b"\n", b"{}\n", b"[]\n", b"null\n", b"\xff\xfe\n", b"PK"])
def test_what_is_no_request_at_all_is_refused(content: bytes) -> None:
    assert refusal(content).reason in (Reason.REQUEST_MALFORMED, Reason.REQUEST_TRUNCATED)


def test_a_message_names_the_place_and_never_the_value() -> None:
    error = refusal(by_hand(line(epoch="my-secret", catalog=5), *MANIFESTS))
    assert "epoch" in str(error)
    assert "my-secret" not in str(error)


# --- Keys ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"epoch": 42},
        {"attempt": str(UUID(int=1))},
        {"table-uuid": str(UUID(int=1))},
        {"producer": {"id": "query-2"}},
    ],
)
def test_a_request_under_the_key_of_another_is_refused(change: Mapping[str, Any]) -> None:
    key = read_request(by_hand(line(), *MANIFESTS)).request.inbox_key
    error = refusal(by_hand(line(**change), *MANIFESTS), key=key)
    assert error.reason == Reason.REQUEST_KEY_MISMATCH


PRODUCERS = st.text(min_size=1, max_size=60).filter(
    lambda text: text.isprintable() and text not in (".", "..")
)


@given(
    table=st.uuids(),
    producer=PRODUCERS,
    epoch=st.integers(0, EPOCH_MAX),
    attempt=st.uuids(),
)
def test_a_key_is_read_back_as_it_was_made(
    table: UUID, producer: str, epoch: int, attempt: UUID
) -> None:
    if len(quote(producer, safe="")) > 200:
        return
    key = inbox_key(table, producer, epoch, attempt)
    parsed = parse_inbox_key(key)
    assert (parsed.table_uuid, parsed.producer, parsed.epoch, parsed.attempt) == (
        table,
        producer,
        epoch,
        attempt,
    )
    assert ".." not in key.split("/")
    assert is_inbox_key(key)


@given(first=st.integers(0, EPOCH_MAX), second=st.integers(0, EPOCH_MAX))
def test_keys_of_one_producer_sort_by_epoch(first: int, second: int) -> None:
    keys = [inbox_key(TABLE, "q", epoch, ATTEMPT) for epoch in (first, second)]
    assert (keys[0] < keys[1]) == (first < second)


@given(st.text(max_size=120))
def test_a_text_is_a_key_only_if_it_is_what_a_key_prints(text: str) -> None:
    try:
        parsed = parse_inbox_key(text)
    except ValueError:
        return
    assert inbox_key(parsed.table_uuid, parsed.producer, parsed.epoch, parsed.attempt) == text


@pytest.mark.parametrize("producer", ["..", ".", "", "%2e%2e", "a%2", "%ff", "q" * 201])
def test_a_key_that_no_request_has_is_refused(producer: str) -> None:
    key = f"{TABLE}/{producer}/{41:020d}/{ATTEMPT}"
    with pytest.raises(ValueError):
        parse_inbox_key(key)
    assert not is_inbox_key(key)


@pytest.mark.parametrize(
    "key",
    [
        f"{str(TABLE).upper()}/q/{41:020d}/{ATTEMPT}",
        f"{TABLE.hex}/q/{41:020d}/{ATTEMPT}",
        f"{TABLE}/q/41/{ATTEMPT}",
        f"{TABLE}/q/{41:020d}/{ATTEMPT}".replace("0000041", "00000\u0664\u0661"),
        f"{TABLE}/q/{41:020d}/{ATTEMPT}\n",
    ],
)
def test_a_key_is_spelled_in_one_way_only(key: str) -> None:
    with pytest.raises(ValueError):
        parse_inbox_key(key)
    assert not is_inbox_key(key)


# --- Fuzz ----------------------------------------------------------------------------------------

CONTENT = by_hand(line(files=[{"a": [1, None]}]), *MANIFESTS)
Mutation = Callable[[bytes], bytes]


def _replaced(position: int, count: int, new: bytes) -> Mutation:
    return lambda content: content[:position] + new + content[position + count :]


MUTATIONS = st.lists(
    st.builds(
        _replaced,
        st.integers(0, len(CONTENT)),
        st.integers(0, 40),
        st.one_of(
            st.binary(max_size=8),
            st.sampled_from(
                [
                    b"\n",
                    b'"',
                    b"{",
                    b"}",
                    b"[",
                    b"null",
                    b"1e999",
                    b"NaN",
                    b"\\ud800",
                    b"-",
                    b"9" * 30,
                ]
            ),
        ),
    ),
    min_size=1,
    max_size=4,
)


@pytest.mark.simulation
@settings(max_examples=400, deadline=None)
@given(MUTATIONS)
def test_a_mutated_request_is_refused_or_reads_as_a_whole_request(
    mutations: list[Mutation],
) -> None:
    content = CONTENT
    for mutate in mutations:
        content = mutate(content)
    try:
        sealed = read_request(content)
    except InvalidRequestError as error:
        assert isinstance(error.reason, Reason)
        return
    # An accepted request is accepted whole: encoded again it is the same request.
    manifests = inline(*(bytes(sealed.manifest(one)) for one in sealed.request.manifests))
    line = sealed.request.model_dump_json(by_alias=True, exclude_none=True).encode()
    assert read_request(line + b"\n" + content[sealed.body :]).request == sealed.request
    assert sum(len(one.content) for one in manifests) == len(content) - sealed.body


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)


@pytest.mark.simulation
@settings(max_examples=400, deadline=None)
@given(name=st.sampled_from([*line(), "needs", "branch", "operation", "files"]), value=VALUES)
def test_any_value_in_any_field_is_refused_or_read(name: str, value: object) -> None:
    content = by_hand(line(**{name: value}), *MANIFESTS)
    try:
        request = read_request(content).request
    except InvalidRequestError:
        return
    assert isinstance(request, CommitRequest)
    assert parse_inbox_key(request.inbox_key).epoch == request.epoch
