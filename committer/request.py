"""The commit request: one line of JSON, then the Iceberg manifests that it names, byte for byte.

    {"request-version":1,"catalog":…,"table":…,…,"manifests":[{"offset":0,"length":n,…}]}\n<manifest><manifest>…

This is a durable format and the contract with every client, in any language: the JSON Schema in
`docs/reference/` is produced from the models here. Reading and writing bytes lives here; what a
request may do to a table is decided in `committer.plan`. Pure: no I/O, no clock.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache
from hashlib import blake2b
from itertools import accumulate
from math import isfinite
from typing import Annotated, Literal, Self
from urllib.parse import quote, unquote
from uuid import UUID

from pydantic import (
    AfterValidator,
    AliasGenerator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    model_validator,
)

from committer.attempt import attempt_of, nonce_ms
from committer.errors import InvalidRequestError
from committer.iceberg.values.json_reader import count_keys, keys_repeated
from committer.reason import Reason

REQUEST_VERSION = 1
# Measured: as objects a line takes up to 40 times its bytes, and its parser as much beside.
LINE_BYTES_MAX = 4 * 1024 * 1024
REQUEST_BYTES_MAX = 64 * 1024 * 1024
EPOCH_MAX = 2**63 - 1
DIGEST_PREFIX = "blake2b-256:"


@dataclass(frozen=True, slots=True, order=True)
class TableIdentifier:
    """A table's name in its catalog: namespace levels, then the name."""

    namespace: tuple[str, ...]
    name: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """`db.flights` is table `flights` of namespace `("db",)`. Errors: `ValueError`."""
        *namespace, name = text.split(".")
        if not namespace or not name or not all(namespace):
            raise ValueError(f"expected a table name such as `db.flights`, found `{text}`")
        return cls(tuple(namespace), name)

    def __str__(self) -> str:
        return ".".join((*self.namespace, self.name))


class ReceiptState(StrEnum):
    """How far a request has come. Durable: it will not be lost. The other two are final."""

    DURABLE = "durable"
    COMMITTED = "committed"
    QUARANTINED = "quarantined"


@dataclass(frozen=True, slots=True)
class Receipt:
    """The outcome of a request. Ids are set when committed, reason and message when quarantined.

    `duplicate`: another attempt of the epoch landed, whose ids these are; this one's files did not.
    `backlog`: so many requests still waited when `publish`, slowed down by them, returned; None
    where it was not slowed.
    """

    producer: str
    epoch: int
    attempt: str
    state: ReceiptState
    snapshot_id: int | None = None
    sequence_number: int | None = None
    reason: str | None = None
    message: str | None = None
    duplicate: bool = False
    backlog: int | None = None


# --- The JSON line -------------------------------------------------------------------------------


class _Model(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        validate_by_alias=True,
        validate_by_name=True,
        alias_generator=AliasGenerator(alias=lambda name: name.replace("_", "-")),
        hide_input_in_errors=True,
    )


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("expected printable characters only")
    return text


@lru_cache(maxsize=4096)
def _quoted(text: str) -> str:
    return quote(text, safe="")


def _path_segment(text: str) -> str:
    """A producer's id is one segment of an inbox key."""
    if text in ("", ".", "..") or len(_quoted(text)) > 200:
        raise ValueError("expected 1 to 200 characters once percent-encoded, not `.` or `..`")
    return text


# Named once: a union that is written in place is made anew at each look.
_CONTAINERS = (dict, list)


def _finite(value: JsonValue) -> JsonValue:
    """The parser reads NaN and Infinity, which no other JSON reader understands."""
    for inner in value.values() if isinstance(value, dict) else _items(value):
        # Most values are integers and text: a call for each would take most of the time.
        if isinstance(inner, _CONTAINERS):
            _finite(inner)
        elif isinstance(inner, float) and not isfinite(inner):
            raise ValueError("expected numbers that JSON has, found NaN or an infinity")
    return value


def _integer(value: object) -> object:
    """A literal is compared, and `true` and `1.0` are equal to 1."""
    if type(value) is not int:
        raise ValueError("expected an integer")
    return value


def _items(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


Name = Annotated[str, Field(min_length=1, max_length=255), AfterValidator(_printable)]
TableNamePart = Annotated[Name, Field(pattern=r"^[^.]+$")]
ProducerId = Annotated[Name, AfterValidator(_path_segment)]
Count = Annotated[int, Field(ge=0, le=2**63 - 1)]
Document = Annotated[dict[str, JsonValue], AfterValidator(_finite)]
Digest = Annotated[str, Field(pattern=r"^blake2b-256:[0-9a-f]{64}$")]


class TableName(_Model):
    """The table's name, as in the REST catalog specification. No part has a dot: catalogs, the
    ledger's readers and the log know a table by its parts joined by dots.
    """

    namespace: Annotated[tuple[TableNamePart, ...], Field(min_length=1, max_length=16)]
    name: TableNamePart


class Producer(_Model):
    """A stable identity of one writing query.

    `sequential`: epoch N is made durable only after all lower ones (Spark's own query id).
    `ordered`: epochs land in ascending order. `one_shot`: this identity never publishes again.
    `name`: what people call it; shown to them, and never compared.
    """

    id: ProducerId
    name: Name | None = None
    sequential: bool = False
    ordered: bool = False
    one_shot: bool = False


class Fingerprint(_Model):
    """The identity of an epoch's content, with its kind. Only equal kinds are compared."""

    kind: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,40}$")]
    value: Annotated[str, Field(max_length=128), AfterValidator(_printable)]


class Needs(_Model):
    """The assumptions of an operation, beside the files that it adds."""

    base_snapshot_id: Annotated[int, Field(ge=0)] | None = None
    conflict_filter: Document | bool | None = None
    isolation_level: Literal["serializable", "snapshot"] | None = None
    removed_paths: tuple[Annotated[str, Field(min_length=1, max_length=4096)], ...] = ()
    on_conflict: Literal["quarantine", "discard"] = "quarantine"


class ManifestReference(_Model):
    """A manifest that follows the line (`offset`, from the byte after the newline), or one that the
    client has written into the table's metadata folder (`path`)."""

    content: Literal["data", "deletes"]
    partition_spec_id: Annotated[int, Field(ge=0)]
    length: Annotated[int, Field(ge=1, le=REQUEST_BYTES_MAX)]
    added_files_count: Count
    added_rows_count: Count
    hash: Digest
    offset: Count | None = None
    path: Annotated[str, Field(min_length=1, max_length=4096)] | None = None

    @model_validator(mode="after")
    def _offset_or_path(self) -> Self:
        if (self.offset is None) == (self.path is None):
            raise ValueError("expected either `offset` or `path`")
        return self


Operation = Literal["append", "overwrite", "replace", "delete", "row-delta"]


class CommitRequest(_Model):
    """The JSON line: one atomic change of one (table uuid, producer, epoch, attempt).

    `attempt` follows from `nonce` and what stands beside it (`attempt_of`), and is checked.
    """

    request_version: Annotated[Literal[1], BeforeValidator(_integer)] = 1
    catalog: Name
    table: TableName
    table_uuid: UUID
    branch: Name = "main"
    producer: Producer
    epoch: Annotated[int, Field(ge=0, le=EPOCH_MAX)]
    nonce: UUID
    attempt: UUID
    fingerprint: Fingerprint
    published_at_ms: Count
    operation: Operation = "append"
    needs: Needs = Needs()
    adopt_existing: bool = False
    signature: Annotated[str, Field(max_length=1024)] | None = None
    key_id: Name | None = None
    not_after_ms: Count | None = None
    manifests: Annotated[tuple[ManifestReference, ...], Field(max_length=10_000)] = ()
    files: tuple[Document, ...] = ()

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if not self.manifests and not self.files and not self.needs.removed_paths:
            raise ValueError("expected at least one manifest, file or removed path")
        if (self.signature is None) != (self.key_id is None):
            raise ValueError("expected `signature` and `key-id` together")
        if self.not_after_ms is not None and self.signature is None:
            raise ValueError("expected `not-after-ms` with a signature only")
        if self.producer.sequential and self.producer.one_shot:
            raise ValueError("a producer is not sequential and one-shot at once")
        if self.producer.one_shot and nonce_ms(self.nonce) is None:
            raise ValueError("expected a UUIDv7 as the nonce of a one-shot producer")
        return self

    @property
    def identifier(self) -> TableIdentifier:
        return TableIdentifier(self.table.namespace, self.table.name)

    @property
    def expected_attempt(self) -> UUID:
        return attempt_of(self.table_uuid, self.branch, self.producer.id, self.epoch, self.nonce)

    @cached_property
    def inbox_key(self) -> str:
        return inbox_key(self.table_uuid, self.producer.id, self.epoch, self.attempt)


# --- Bytes ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EncodedRequest:
    """A request and the bytes that it was read from. `body` starts after the line's newline. Not
    `is_whole`: what only its check needs was left out (`files`), and is in the bytes.
    """

    request: CommitRequest
    content: bytes
    body: int
    is_whole: bool = True

    def manifest(self, reference: ManifestReference) -> memoryview:
        """The bytes of an inline manifest (without copying); its range and hash were checked."""
        start = self.body + (reference.offset or 0)
        return memoryview(self.content)[start : start + reference.length]


@dataclass(frozen=True, slots=True)
class InlineManifest:
    """A manifest to be sent with a request, and what its line says about it."""

    content: bytes
    kind: Literal["data", "deletes"]
    partition_spec_id: int
    added_files_count: int
    added_rows_count: int


def digest(content: bytes | memoryview) -> str:
    """BLAKE2b with 256 bits, in hexadecimal with its name in front."""
    return DIGEST_PREFIX + blake2b(content, digest_size=32).hexdigest()


def line_digest(content: bytes) -> str:
    """The digest of a request's line, newline included. The line holds those of what follows it, so
    that no byte is hashed twice."""
    return digest(memoryview(content)[: content.find(b"\n", 0, LINE_BYTES_MAX + 1) + 1])


def inline_references(manifests: Sequence[InlineManifest]) -> tuple[ManifestReference, ...]:
    """Return the references in a request's line to the manifests that follow it in this order.

    Errors: `InvalidRequestError` where no request has room for them.
    """
    _check_size(sum(len(manifest.content) for manifest in manifests))
    offsets = accumulate((len(manifest.content) for manifest in manifests), initial=0)
    return tuple(map(_reference, manifests, offsets))


def _reference(manifest: InlineManifest, offset: int) -> ManifestReference:
    return ManifestReference(
        content=manifest.kind,
        partition_spec_id=manifest.partition_spec_id,
        length=len(manifest.content),
        added_files_count=manifest.added_files_count,
        added_rows_count=manifest.added_rows_count,
        hash=digest(manifest.content),
        offset=offset,
    )


def seal_request(
    request: CommitRequest, manifests: Sequence[InlineManifest] = ()
) -> EncodedRequest:
    """The request's line, which names the manifests (`inline_references`), and behind it these.

    Errors: `InvalidRequestError` where it would be larger than `read_request` takes.
    """
    line = request.model_dump_json(by_alias=True, exclude_defaults=False, exclude_none=True)
    head = line.encode() + b"\n"
    _check_line_size(len(head) - 1)
    content = b"".join((head, *(manifest.content for manifest in manifests)))
    _check_size(len(content))
    return EncodedRequest(request, content, len(head))


def _check_size(size_bytes: int) -> None:
    if size_bytes > REQUEST_BYTES_MAX:
        raise _refused(
            Reason.REQUEST_TOO_LARGE,
            f"the request has {size_bytes} bytes, the limit is {REQUEST_BYTES_MAX}",
        )


def _check_line_size(size_bytes: int) -> None:
    if size_bytes > LINE_BYTES_MAX:
        raise _refused(
            Reason.REQUEST_TOO_LARGE,
            f"the JSON line has more than {LINE_BYTES_MAX} bytes",
        )


def read_request(content: bytes, *, key: str | None = None) -> EncodedRequest:
    """Parse and check a request: line, version, ranges and hashes of its manifests.

    `key` is the inbox key it was found under, which must be its own.
    Errors: `InvalidRequestError` with the reason, for anything that is wrong.
    """
    _check_size(len(content))
    newline = content.find(b"\n", 0, LINE_BYTES_MAX + 1)
    if newline < 0:
        _check_line_size(len(content))
        raise _refused(
            Reason.REQUEST_TRUNCATED, "the JSON line does not end: expected a newline behind it"
        )
    sealed = EncodedRequest(_parse_line(content[:newline]), content, newline + 1)
    if key is not None and key != sealed.request.inbox_key:
        raise _refused(
            Reason.REQUEST_KEY_MISMATCH,
            f"found under the key `{key}`, but its line says `{sealed.request.inbox_key}`",
        )
    _check_attempt(sealed.request)
    _check_body(sealed)
    return sealed


_VERSION = re.compile(rb'"request-version"\s*:\s*([^,}\s]{1,20})')


def _parse_line(line: bytes) -> CommitRequest:
    """Strict: neither `"5"` nor `true` is a number, and keys are spelled in one way only."""
    try:
        request = CommitRequest.model_validate_json(line, strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        version = _VERSION.search(line)
        if version and version[1] != str(REQUEST_VERSION).encode():
            raise _refused(
                Reason.REQUEST_VERSION_UNKNOWN,
                f"request version {version[1].decode(errors='replace')},"
                f" this committer reads {REQUEST_VERSION}",
            ) from None
        raise _refused(Reason.REQUEST_MALFORMED, _problems(error)) from None
    except RecursionError:
        raise _refused(Reason.REQUEST_MALFORMED, "the JSON line is nested too deeply") from None
    if "request_version" not in request.model_fields_set:
        raise _refused(Reason.REQUEST_MALFORMED, "request-version: Field required")
    repeated = keys_repeated(line, _keys_read(request), _colons_read(request))
    if repeated:
        raise _refused(
            Reason.JSON_KEY_REPEATED, f"in the JSON line {repeated} keys stand twice in one object"
        )
    return request


def _keys_read(request: CommitRequest) -> int:
    """How many keys the objects of a parsed line have."""
    needs, filter = request.needs, request.needs.conflict_filter
    keys = (
        len(request.model_fields_set)
        + len(request.table.model_fields_set)
        + len(request.producer.model_fields_set)
        + len(request.fingerprint.model_fields_set)
        + len(needs.model_fields_set)
    )
    for reference in request.manifests:
        keys += len(reference.model_fields_set)
    for document in request.files:
        keys += count_keys(document)
    return keys + count_keys(filter)


def _colons_read(request: CommitRequest) -> int:
    """How many colons are in texts of a parsed line: of those that mostly have some."""
    # Each hash has one.
    colons = len(request.manifests)
    for reference in request.manifests:
        if reference.path is not None:
            colons += reference.path.count(":")
    for document in request.files:
        colons += str(document.get("file-path")).count(":")
    return colons


def _problems(error: ValidationError) -> str:
    """Name each wrong place; never its value (values may be secrets or data)."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    texts = [
        f"{'.'.join(str(part) for part in problem['loc']) or 'line'}: {problem['msg']}"
        for problem in problems[:5]
    ]
    return "; ".join(texts) + ("; …" if len(problems) > 5 else "")


def _check_attempt(request: CommitRequest) -> None:
    expected = request.expected_attempt
    if request.attempt != expected:
        raise _refused(
            Reason.ATTEMPT_MISMATCH,
            f"attempt {request.attempt}, expected {expected}: UUIDv5 with the"
            f" table uuid {request.table_uuid} as the namespace and, as the name, branch, producer"
            " id, epoch and nonce joined by line feeds",
        )


def _check_body(sealed: EncodedRequest) -> None:
    expected = 0
    for reference in sealed.request.manifests:
        if reference.offset is None:
            continue
        if reference.offset != expected:
            raise _refused(
                Reason.REQUEST_MALFORMED,
                f"a manifest starts at offset {reference.offset}, expected {expected}"
                " (manifests follow one another without gaps)",
            )
        expected += reference.length
    found = len(sealed.content) - sealed.body
    if found < expected:
        raise _refused(
            Reason.REQUEST_TRUNCATED, f"{found} bytes of manifests, the line announces {expected}"
        )
    if found > expected:
        raise _refused(
            Reason.REQUEST_MALFORMED, f"{found - expected} bytes behind the last manifest"
        )
    for number, reference in enumerate(sealed.request.manifests):
        if reference.offset is not None and digest(sealed.manifest(reference)) != reference.hash:
            raise _refused(
                Reason.HASH_MISMATCH, f"manifest {number} does not have the hash it names"
            )


def _refused(reason: Reason, message: str) -> InvalidRequestError:
    return InvalidRequestError(reason, message)


# --- Inbox keys ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RequestKey:
    """The parts of an inbox key."""

    table_uuid: UUID
    producer: str
    epoch: int
    attempt: UUID


def producer_prefix(table_uuid: UUID, producer: str) -> str:
    """The folder of one producer's requests. Sorts by table, then producer."""
    return f"{table_uuid}/{_quoted(producer)}"


def inbox_key(table_uuid: UUID, producer: str, epoch: int, attempt: UUID) -> str:
    """`<table uuid>/<producer>/<epoch, 20 digits>/<attempt>`; the producer is percent-encoded."""
    return f"{producer_prefix(table_uuid, producer)}/{epoch:020d}/{attempt}"


def parse_inbox_key(key: str) -> RequestKey:
    """The inverse of `inbox_key`. Errors: `ValueError` for what `inbox_key` never prints."""
    table_uuid, producer, epoch, attempt = key.split("/")
    parsed = RequestKey(
        UUID(table_uuid), _path_segment(unquote(producer)), int(epoch), UUID(attempt)
    )
    if inbox_key(parsed.table_uuid, parsed.producer, parsed.epoch, parsed.attempt) != key:
        raise ValueError(f"not an inbox key: `{key}`")
    return parsed
