"""What each operation of a request says of the table, and every way in which that does not fit."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from committer.errors import InvalidRequestError
from committer.request.commit_request import CommitRequest
from committer.request.needs import FILES_NAMED_MAX, Needs, check_needs
from committer.request.request_format import read_request, seal_request
from tests.support.builders.flights import build_flights
from tests.support.builders.request_builders import build_line, changed_line

BASE = {"base-snapshot-id": 7, "base-sequence-number": 3}
FILES = {"removed-data-files": ["s3://b/a.parquet", "s3://b/b.parquet"]}
VECTOR = {"file-path": "s3://b/d.puffin", "content-offset": 4, "content-size-in-bytes": 40}
EQUAL = {"type": "eq", "term": "carrier", "value": "a:b"}

GOOD: dict[str, tuple[str, dict[str, Any], bool]] = {
    "an append that knows its base": ("append", BASE, True),
    "an overwrite that only adds": ("overwrite", {}, True),
    "an overwrite of everything": ("overwrite", {"row-filter": True}, False),
    "an overwrite by filter": (
        "overwrite",
        {**BASE, "row-filter": EQUAL, "added-files-match-filter": True, "case-sensitive": False},
        True,
    ),
    "a copy on write": (
        "overwrite",
        {
            **BASE,
            **FILES,
            "removed-delete-files": [VECTOR, {"file-path": "s3://b/p.parquet"}],
            "conflict-filter": EQUAL,
            "isolation-level": "serializable",
        },
        True,
    ),
    "a replacement of partitions": (
        "replace-partitions",
        {**BASE, "isolation-level": "snapshot"},
        True,
    ),
    "a first write of partitions": ("replace-partitions", {"append-only": True}, True),
    "a delete by filter": ("delete", {"row-filter": EQUAL}, False),
    "a delete of files": ("delete", {**FILES, "on-conflict": "fail"}, False),
    "an upsert": ("row-delta", {}, True),
    "an update": (
        "row-delta",
        {
            "base-sequence-number": 0,
            "referenced-data-files": ["s3://b/a.parquet"],
            "updates-rows": True,
            "conflict-filter": {"type": "true"},
        },
        True,
    ),
    "a rewrite": ("rewrite-files", {**BASE, **FILES, "data-sequence-number": 3}, True),
    "a rewrite in groups": (
        "rewrite-files",
        {
            **BASE,
            **FILES,
            "groups": [
                {"removed-data-files": ["s3://b/a.parquet"], "added-data-files": ["s3://b/x"]},
                {"removed-data-files": ["s3://b/b.parquet"], "added-data-files": []},
            ],
        },
        True,
    ),
    "a rewrite of a vector": (
        "rewrite-files",
        {**BASE, "removed-delete-files": [VECTOR]},
        False,
    ),
    "a conversion of deletes": (
        "rewrite-files",
        {**BASE, "removed-delete-files": [VECTOR], "referenced-data-files": ["s3://b/c.parquet"]},
        True,
    ),
    "a rewrite of manifests": ("rewrite-manifests", {}, False),
    "a rewrite of named manifests": (
        "rewrite-manifests",
        {"rewritten-manifests": ["s3://b/m0.avro", "s3://b/m1.avro"]},
        False,
    ),
    "a pick": ("cherry-pick", {"source-snapshot-id": 5}, False),
    "a publication": ("cherry-pick", {"wap-id": "nightly"}, False),
}


def line_of(operation: str, needs: dict[str, Any], *, adds: bool, **line: object) -> CommitRequest:
    """Return a line as its JSON is read."""
    changed = changed_line(build_line(build_flights()), files=({"a": 1},) if adds else ())
    document = json.loads(seal_request(changed).content)
    document |= {"operation": operation, "needs": needs, **line}
    return CommitRequest.model_validate_json(json.dumps(document), strict=True)


@pytest.mark.parametrize("name", GOOD)
def test_every_operation_says_what_it_needs_and_is_read_back_as_it_was_written(name: str) -> None:
    operation, needs, adds = GOOD[name]
    request = line_of(operation, needs, adds=adds)
    sealed = seal_request(request)
    assert read_request(sealed.content).request == request
    # A reader of the line sees what was said, and nothing else.
    assert json.loads(sealed.content).get("needs", {}) == needs


def test_the_line_of_an_append_says_nothing_of_other_operations() -> None:
    written = json.loads(seal_request(build_line(build_flights())).content)
    unsaid = {"needs", "summary", "stage-only", "create-branch", "changes"}
    assert not unsaid & written.keys()


BAD: dict[str, tuple[str, dict[str, Any], bool, str]] = {
    "removes twice": ("delete", {"removed-data-files": ["a", "a"]}, False, "names a file twice"),
    "removes a vector twice": (
        "rewrite-files",
        {**BASE, "removed-delete-files": [VECTOR, VECTOR]},
        False,
        "names a file twice",
    ),
    "refers twice": ("row-delta", {"referenced-data-files": ["a", "a"]}, True, "a file twice"),
    "removes what it refers to": (
        "row-delta",
        {"removed-data-files": ["a"], "referenced-data-files": ["a"]},
        True,
        "`removed-data-files` and `referenced-data-files`",
    ),
    "half a vector": (
        "rewrite-files",
        {**BASE, "removed-delete-files": [{"file-path": "a", "content-offset": 4}]},
        False,
        "`content-size-in-bytes` together",
    ),
    "nothing to match": ("overwrite", {"added-files-match-filter": True}, True, "`row-filter`"),
    "isolated from nothing": ("overwrite", {"isolation-level": "snapshot"}, True, "base-seq"),
    "updates what it has not read": ("row-delta", {"updates-rows": True}, True, "base-seq"),
    "a filter that nothing asks": (
        "overwrite",
        {**BASE, "conflict-filter": True},
        True,
        "`isolation-level`",
    ),
    "a group of strangers": (
        "rewrite-files",
        {**BASE, **FILES, "groups": [{"removed-data-files": ["s3://b/a.parquet", "x"]}]},
        True,
        "in one of `groups`",
    ),
    "a file in two groups": (
        "rewrite-files",
        {
            **BASE,
            "removed-data-files": ["a"],
            "groups": [{"removed-data-files": ["a"]}, {"removed-data-files": ["a"]}],
        },
        True,
        "names a file twice",
    ),
    "groups with named deletes": (
        "rewrite-files",
        {
            **BASE,
            "removed-data-files": ["a"],
            "removed-delete-files": [VECTOR],
            "groups": [{"removed-data-files": ["a"]}],
        },
        True,
        "`removed-delete-files` with `groups`",
    ),
    "an append that removes": ("append", {"row-filter": True}, True, "does not take `row-filter`"),
    "an append of nothing": ("append", {}, False, "at least one manifest"),
    "an overwrite of nothing": ("overwrite", BASE, False, "add or remove"),
    "a replacement by nothing": ("replace-partitions", {}, False, "at least one manifest"),
    "a replacement by filter": ("replace-partitions", {"row-filter": True}, True, "row-filter"),
    "a delete of nothing": ("delete", {}, False, "`removed-data-files` with `delete`"),
    "a delete that adds": ("delete", {"row-filter": True}, True, "only removes"),
    "a delete in isolation": (
        "delete",
        {**BASE, "row-filter": True, "isolation-level": "snapshot"},
        False,
        "isolation-level",
    ),
    "a delta by filter": ("row-delta", {"row-filter": True}, True, "row-filter"),
    "a delta with a number": ("row-delta", {"data-sequence-number": 1}, True, "data-sequence"),
    "a rewrite of nothing": ("rewrite-files", BASE, True, "expected `removed-data-files`"),
    "a rewrite without a base": ("rewrite-files", FILES, True, "deletes since then"),
    "a rewrite of manifests with files": ("rewrite-manifests", {}, True, "no manifests"),
    "a manifest that is rewritten twice": (
        "rewrite-manifests",
        {"rewritten-manifests": ["m", "m"]},
        False,
        "`rewritten-manifests` names a file twice",
    ),
    "a rewrite of files with manifests": (
        "rewrite-files",
        {**BASE, **FILES, "rewritten-manifests": ["m"]},
        True,
        "does not take `rewritten-manifests`",
    ),
    "a pick of nothing": ("cherry-pick", {}, False, "either"),
    "a pick of both": ("cherry-pick", {"source-snapshot-id": 1, "wap-id": "a"}, False, "either"),
    "a pick that adds": ("cherry-pick", {"wap-id": "a"}, True, "no manifests"),
    "changes of nothing": ("alter", {}, False, "`changes`"),
    "the old operation": ("replace", {}, True, "operation"),
}


@pytest.mark.parametrize("name", BAD)
def test_needs_that_do_not_fit_are_refused_with_a_sentence(name: str) -> None:
    operation, needs, adds, words = BAD[name]
    with pytest.raises(ValidationError, match=words):
        line_of(operation, needs, adds=adds)


_UNION: dict[str, object] = {
    "action": "union-by-name",
    "schema": {"type": "struct", "fields": []},
}


@pytest.mark.parametrize(
    ("operation", "line", "words"),
    [
        ("append", {"changes": [{"action": "remove-properties", "removals": ["a"]}]}, "`changes`"),
        ("row-delta", {"changes": [_UNION]}, "an overwrite or a row-delta .* `with-ids`"),
        ("replace-partitions", {"changes": [_UNION | {"with-ids": True}]}, "`changes` with oper"),
        ("rewrite-manifests", {"stage-only": True}, "stage-only"),
        ("rewrite-manifests", {"create-branch": True}, "no `create-branch` with operation"),
        ("append", {"create-branch": True, "stage-only": True}, "which moves no branch"),
        ("overwrite", {"adopt-existing": True}, "adopt-existing"),
        ("append", {"summary": {"frazil.epochs": "1"}}, "committer's own"),
        ("append", {"summary": {f"k{n}": "" for n in range(101)}}, "at most 100"),
    ],
)
def test_fields_of_other_operations_are_refused(
    operation: str, line: dict[str, object], words: str
) -> None:
    with pytest.raises(ValidationError, match=words):
        line_of(operation, {}, adds=operation != "rewrite-manifests", **line)


@pytest.mark.parametrize("name", ["row-filter", "conflict-filter"])
@pytest.mark.parametrize("value", ["true", "id = 1", 1, 1.5, [], [{"type": "true"}]])
def test_a_filter_that_is_neither_an_expression_nor_a_boolean_is_refused_with_one_sentence(
    name: str, value: object
) -> None:
    assert refusal({name: value}) == (
        f"needs.{name}: expected an expression, which is a JSON object, or `true` or"
        " `false` without quotes"
    )


def test_a_number_in_a_filter_that_json_does_not_have_is_refused_with_one_sentence() -> None:
    assert refusal({"row-filter": {**EQUAL, "value": [float("nan")]}}) == (
        "needs.row-filter: expected numbers that JSON has, found NaN or an infinity"
    )


def refusal(needs: dict[str, object]) -> str:
    """Return why a request with these needs is refused."""
    line = json.loads(seal_request(build_line(build_flights())).content)
    line |= {"operation": "overwrite", "needs": needs}
    with pytest.raises(InvalidRequestError) as caught:
        read_request(json.dumps(line).encode() + b"\n")
    return str(caught.value)


def test_the_named_files_are_bounded_in_number() -> None:
    paths = [str(number) for number in range(FILES_NAMED_MAX + 1)]
    Needs(removed_data_files=tuple(paths[1:]))
    with pytest.raises(ValidationError):
        Needs(removed_data_files=tuple(paths))
    with pytest.raises(ValidationError):
        Needs(referenced_data_files=tuple(paths))


def test_a_key_that_is_given_twice_in_a_named_file_is_refused() -> None:
    request = line_of("rewrite-files", GOOD["a rewrite of a vector"][1], adds=False)
    content = seal_request(request).content
    twice = content.replace(b'"content-offset":4', b'"content-offset":4,"content-offset":4')
    assert twice != content
    with pytest.raises(Exception, match="keys stand twice"):
        read_request(twice)


def test_groups_alone_say_which_files_a_rewrite_removes() -> None:
    groups = [{"removed-data-files": ["a", "b"]}, {"removed-data-files": ["c"]}]
    needs = Needs.model_validate({**BASE, "groups": groups})
    check_needs("rewrite-files", needs, adds_files=True)
    assert needs.removed_data_files == needs.named_files == ("a", "b", "c")
    assert "removed_data_files" not in needs.said()
    many = [{"removed-data-files": [f"{at}/{n}" for n in range(15_000)]} for at in range(2)]
    with pytest.raises(ValidationError, match="at most 20000 files in all of `groups`"):
        Needs.model_validate({**BASE, "groups": many})
    with pytest.raises(ValidationError, match="names a file twice"):
        Needs.model_validate({**BASE, "groups": [groups[0], groups[0]]})
    referred = {"referenced-data-files": ["c"], "groups": groups}
    with pytest.raises(ValidationError, match="`removed-data-files` and `referenced-data-files`"):
        Needs.model_validate({**BASE, **referred})
