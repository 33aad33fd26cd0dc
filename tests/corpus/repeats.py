"""One file twice in a request, in every place and every spelling that may name one object."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from committer.iceberg.entry.data_file import DataFile
from committer.ports.pointer_swap import LoadedTable
from committer.ports.storage import NewObject
from committer.reason import Reason
from committer.request.commit_request import CommitRequest
from committer.request.request_format import inline_references, seal_request
from tests.corpus.hostile import Hostile, Sent
from tests.support.builders.bad_requests import entry, file_of, hand_over, inline_document, refer
from tests.support.builders.request_builders import build_line

Lists = Callable[[LoadedTable, CommitRequest, DataFile, DataFile], Sent]


def _in_one_manifest(
    table: LoadedTable, line: CommitRequest, one: DataFile, other: DataFile
) -> Sent:
    manifest = hand_over(table, entry(one), entry(other))
    named = line.model_copy(update={"files": (), "manifests": inline_references([manifest])})
    return Sent.of(seal_request(named, [manifest]))


def _in_two_manifests(
    table: LoadedTable, line: CommitRequest, one: DataFile, other: DataFile
) -> Sent:
    manifests = [hand_over(table, entry(one)), hand_over(table, entry(other))]
    named = line.model_copy(update={"files": (), "manifests": inline_references(manifests)})
    return Sent.of(seal_request(named, manifests))


def _as_json(table: LoadedTable, line: CommitRequest, one: DataFile, other: DataFile) -> Sent:
    documents = [
        inline_document(table, line) | {"file-path": file.file_path} for file in (one, other)
    ]
    return Sent.of(seal_request(line.model_copy(update={"files": tuple(documents)})))


def _in_a_manifest_and_as_json(
    table: LoadedTable, line: CommitRequest, one: DataFile, other: DataFile
) -> Sent:
    manifest = hand_over(table, entry(one))
    document = inline_document(table, line) | {"file-path": other.file_path}
    update = {"files": (document,), "manifests": inline_references([manifest])}
    return Sent.of(seal_request(line.model_copy(update=update), [manifest]))


def _in_a_manifest_and_a_named_one(
    table: LoadedTable, line: CommitRequest, one: DataFile, other: DataFile
) -> Sent:
    manifest, content = hand_over(table, entry(one)), hand_over(table, entry(other)).content
    path = f"{table.metadata.location}/metadata/{line.attempt}-m0.avro"
    references = (*inline_references([manifest]), refer(path, content))
    named = line.model_copy(update={"files": (), "manifests": references})
    return Sent.of(seal_request(named, [manifest]), NewObject(path, content))


def _in_one_that_is_named_twice(
    table: LoadedTable, line: CommitRequest, one: DataFile, other: DataFile
) -> Sent:
    content = hand_over(table, entry(one)).content
    path = f"{table.metadata.location}/metadata/{line.attempt}-m0.avro"
    named = line.model_copy(update={"files": (), "manifests": (refer(path, content),) * 2})
    return Sent.of(seal_request(named), NewObject(path, content))


WAYS: dict[str, Lists] = {
    "in one manifest": _in_one_manifest,
    "in two manifests": _in_two_manifests,
    "as JSON": _as_json,
    "in a manifest and as JSON": _in_a_manifest_and_as_json,
    "in a manifest and in a named one": _in_a_manifest_and_a_named_one,
    "in a manifest that is named twice": _in_one_that_is_named_twice,
}

# Other spellings of `data/carrier=AA/00000-<attempt>.parquet`, as replacements.
SPELLINGS: dict[str, tuple[str, str]] = {
    "the same": ("", ""),
    "an upper-case ending": (".parquet", ".PARQUET"),
    "another folder": ("carrier=AA", "carrier=BB"),
    "a folder in lower case": ("carrier=AA", "carrier=aa"),
    "a folder with percent signs": ("carrier=AA", "carrier=%41A"),
    "no folder": ("data/carrier=AA/", ""),
}


def _send(lists: Lists, spelling: tuple[str, str], table: LoadedTable, producer: str) -> Sent:
    line = build_line(table, producer=producer)
    one = file_of(table, line)
    other = file_of(table, line, file_path=one.file_path.replace(*spelling))
    return lists(table, line, one, other)


REPEATS: tuple[Hostile, ...] = tuple(
    Hostile(
        f"twice {how}, spelled as {spelled}",
        Reason.PATH_REPEATED,
        partial(_send, lists, spelling),
    )
    for how, lists in WAYS.items()
    for spelled, spelling in SPELLINGS.items()
)
