"""The bytes of a commit request: one line of JSON, then the manifests that it names, byte for byte.

{"request-version":1,"catalog":…,"table":…,…,"manifests":[{"offset":0,"length":n,…}]}\n<manifest><manifest>…
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import accumulate
from typing import Literal
from uuid import UUID

from pydantic import ValidationError

from committer.errors import InvalidRequestError
from committer.iceberg.values.json_reader import (
    containers_written,
    count_keys,
    keys_repeated,
    outer_keys,
)
from committer.reason import Reason
from committer.request.commit_request import REQUEST_BYTES_MAX, CommitRequest, ManifestReference
from committer.request.needs import Needs
from committer.request.request_key import inbox_key, is_key_of
from committer.request.request_model import problem_text

REQUEST_VERSION = 1
# Measured: as objects a line takes up to 40 times its bytes, and its parser as much beside.
LINE_BYTES_MAX = 4 * 1024 * 1024
# Objects and lists of a line. Each takes up to 160 bytes as an object: measured, with its parser's.
# 10,000 files with bounds and counts of six columns have half as many.
LINE_CONTAINERS_MAX = 400_000
# Pydantic makes an error of each key that is not known, in 500 bytes: of a line with more keys than
# these, it passes over them, and they are counted.
_KEYS_NAMED_MAX = 1_000
DIGEST_PREFIX = "blake2b-256:"


@dataclass(frozen=True, slots=True)
class EncodedRequest:
    """A request and the bytes that it was read from. `body` starts after the line's newline. Not
    `is_whole`: what only its check needs was left out (`files`), and is in the bytes. `object_key`:
    the key that its object was found under; None before there is one.
    """

    request: CommitRequest
    content: bytes
    body: int
    is_whole: bool = True
    object_key: str | None = field(default=None, compare=False)

    @property
    def key(self) -> str:
        """The key of its object in the inbox."""
        return self.object_key or self.request.inbox_key

    def replayed(self, replay: UUID) -> EncodedRequest:
        """Return the same request under a fresh key."""
        one = self.request
        key = inbox_key(one.table_uuid, one.producer.id, one.epoch, one.attempt, replay)
        return dataclasses.replace(self, object_key=key)

    def manifest(self, reference: ManifestReference) -> memoryview:
        """Return the bytes of an inline manifest (without copying);
        its range and hash were checked."""
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
    """Hash with BLAKE2b of 256 bits, in hexadecimal with its name in front."""
    return DIGEST_PREFIX + blake2b(content, digest_size=32).hexdigest()


def line_digest(content: bytes) -> str:
    """Return the digest of a request's line, newline included.
    The line holds those of what follows it, so that no byte is hashed twice."""
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
    """Encode the request's line, which names the manifests (`inline_references`), then these.

    Errors: `InvalidRequestError` where it would be larger than `read_request` takes.
    """
    line = request.model_dump_json(by_alias=True, exclude=_unsaid(request), exclude_none=True)
    head = line.encode() + b"\n"
    _check_line_size(len(head) - 1)
    content = b"".join((head, *(manifest.content for manifest in manifests)))
    _check_size(len(content))
    return EncodedRequest(request, content, len(head))


_OF_OTHER_OPERATIONS = ("summary", "stage_only", "create_branch", "changes")


def _unsaid(request: CommitRequest) -> dict[str, bool | set[str]]:
    """Return the fields that a line leaves out: they would be half of an append's."""
    unsaid: dict[str, bool | set[str]] = {
        name: True for name in _OF_OTHER_OPERATIONS if not getattr(request, name)
    }
    said = request.needs.said()
    unsaid["needs"] = set(Needs.model_fields) - said if said else True
    return unsaid


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

    `key` is the inbox key it was found under, which must be its own or that of a replay of it.
    Errors: `InvalidRequestError` with the reason, for anything that is wrong.
    """
    sealed = parse_request(content, key=key)
    check_hashes(sealed)
    return sealed


def parse_request(content: bytes, *, key: str | None = None) -> EncodedRequest:
    """Parse a request as `read_request`, without the hashes of the manifests:
    the time is that of the line."""
    _check_size(len(content))
    sealed = parse_line(content, key=key)
    _check_ranges(sealed)
    return sealed


def parse_line(content: bytes, *, key: str | None = None) -> EncodedRequest:
    """Parse the line that a request begins with, whatever is missing behind it.

    Errors: `InvalidRequestError`.
    """
    newline = content.find(b"\n", 0, LINE_BYTES_MAX + 1)
    if newline < 0:
        _check_line_size(len(content))
        raise _refused(
            Reason.REQUEST_TRUNCATED, "the JSON line does not end: expected a newline behind it"
        )
    sealed = EncodedRequest(_parse_line(content[:newline]), content, newline + 1, object_key=key)
    if not is_key_of(sealed.key, sealed.request.inbox_key):
        raise _refused(
            Reason.REQUEST_KEY_MISMATCH,
            f"found under the key `{key}`, but its line says `{sealed.request.inbox_key}`",
        )
    _check_attempt(sealed.request)
    return sealed


def check_hashes(sealed: EncodedRequest) -> None:
    """Compare the inline manifests with their hashes. Errors: `InvalidRequestError`."""
    for number, reference in enumerate(sealed.request.manifests):
        if reference.offset is not None and digest(sealed.manifest(reference)) != reference.hash:
            raise _refused(
                Reason.HASH_MISMATCH, f"manifest {number} does not have the hash it names"
            )


_LINE_KEYS = frozenset(str(field.alias) for field in CommitRequest.model_fields.values())
_NAME_CHARS_MAX = 100
_VERSION = re.compile(rb'"request-version"\s*:\s*([^,}\s]{1,20})')


def _parse_line(line: bytes) -> CommitRequest:
    """Parse strictly: neither `"5"` nor `true` is a number,
    and keys are spelled in one way only. Memory and time are those of a valid line of its length.
    """
    _check_containers(line)
    try:
        request = CommitRequest.model_validate_json(
            line,
            strict=True,
            extra="ignore" if _has_many_keys(line) else "forbid",
            by_alias=True,
            by_name=False,
        )
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
    surplus = keys_repeated(line, _keys_read(request), _colons_read(request))
    if surplus:
        raise _surplus_refused(line, surplus)
    return request


def _has_many_keys(line: bytes) -> bool:
    # Each takes five bytes at least, with its value.
    return len(line) > 5 * _KEYS_NAMED_MAX and line.count(b":") > _KEYS_NAMED_MAX


def _check_containers(line: bytes) -> None:
    # Each takes a byte at least.
    if len(line) <= LINE_CONTAINERS_MAX:
        return
    if (count := containers_written(line)) > LINE_CONTAINERS_MAX:
        raise _refused(
            Reason.REQUEST_TOO_LARGE,
            f"the JSON line has {count} objects and lists, the limit is {LINE_CONTAINERS_MAX}:"
            " publish its files in several requests",
        )


def _surplus_refused(line: bytes, count: int) -> InvalidRequestError:
    """Return the refusal of a valid line with so many keys more than were read of it."""
    keys = outer_keys(line)
    if keys is None:
        return _refused(
            Reason.JSON_KEY_REPEATED, f"in the JSON line {count} keys stand twice in one object"
        )
    names = [key for key in keys if key not in _LINE_KEYS]
    texts = [f"{name[:_NAME_CHARS_MAX]}: expected no such key" for name in names[:5]]
    total = f"{count} keys in all that no commit request has"
    return _refused(Reason.REQUEST_MALFORMED, "; ".join((*texts, total)))


def _keys_read(request: CommitRequest) -> int:
    """Count the keys of the objects of a parsed line."""
    needs = request.needs
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
    for change in request.changes:
        keys += count_keys(change.model_dump(mode="json", by_alias=True, exclude_unset=True))
    if request.transaction is not None:
        keys += count_keys(request.transaction.model_dump(mode="json"))
    for named in (*needs.removed_delete_files, *needs.groups):
        keys += len(named.model_fields_set)
    filters = count_keys(needs.row_filter) + count_keys(needs.conflict_filter)
    return keys + filters + len(request.summary)


def _colons_read(request: CommitRequest) -> int:
    """Count the colons in texts of a parsed line: of those that mostly have some."""
    # Each hash has one.
    colons = len(request.manifests)
    for reference in request.manifests:
        if reference.path is not None:
            colons += reference.path.count(":")
    for document in request.files:
        colons += str(document.get("file-path")).count(":")
    needs = request.needs
    return colons + sum(path.count(":") for path in needs.named_files)


def _problems(error: ValidationError) -> str:
    """Name each wrong place; never its value (values may be secrets or data)."""
    problems = error.errors(include_url=False, include_input=False)
    texts = [
        f"{'.'.join(str(part) for part in problem['loc']) or 'line'}: {problem_text(problem)}"
        for problem in problems[:5]
    ]
    return "; ".join(texts) + ("; …" if len(problems) > 5 else "")


def _check_attempt(request: CommitRequest) -> None:
    if not request.has_its_attempt:
        expected = request.expected_attempt
        raise _refused(
            Reason.ATTEMPT_MISMATCH,
            f"attempt {request.attempt}, expected {expected}: UUIDv5 with the"
            f" table uuid {request.table_uuid} as the namespace and, as the name, branch, producer"
            " id, epoch and nonce joined by line feeds",
        )


def _check_ranges(sealed: EncodedRequest) -> None:
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


def _refused(reason: Reason, message: str) -> InvalidRequestError:
    return InvalidRequestError(reason, message)
