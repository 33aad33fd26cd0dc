"""The contents of a line are bounded before it is validated, as are the errors of a wrong one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from committer.errors import InvalidRequestError
from committer.iceberg.values.json_reader import containers_written, outer_keys
from committer.reason import Reason
from committer.request import request_format
from committer.request.commit_request import CommitRequest
from committer.request.request_format import read_request
from tests.support.builders.bad_requests import good
from tests.support.builders.flights import build_flights

GOOD = good(build_flights(), "query-1")
LINE: dict[str, Any] = json.loads(GOOD.content[: GOOD.body])
MANY = 2_000
UNKNOWN = {f"k{number}": number for number in range(MANY)}


def content_of(line: object) -> bytes:
    return json.dumps(line).encode() + b"\n" + GOOD.content[GOOD.body :]


def refusal(content: bytes) -> InvalidRequestError:
    with pytest.raises(InvalidRequestError) as caught:
        read_request(content)
    return caught.value


# --- Errors --------------------------------------------------------------------------------------


def schemas(schema: Any, seen: set[int]) -> Iterator[tuple[dict[str, Any], bool]]:
    """Yield each schema below one, and whether a function looks at the whole value before it."""
    pending: list[tuple[Any, bool]] = [(schema, False)]
    while pending:
        each, is_checked = pending.pop()
        if id(each) in seen or not isinstance(each, dict | list):
            continue
        seen.add(id(each))
        if isinstance(each, list):
            pending += [(inner, False) for inner in each]
            continue
        if "type" in each:
            yield each, is_checked
        is_before = each.get("type") == "function-before"
        pending += [
            (inner, is_before or (is_checked and key == "schema"))
            for key, inner in each.items()
            if key not in ("metadata", "serialization")
        ]


def test_no_list_or_object_of_a_line_has_an_error_for_each_of_many_elements() -> None:
    collections = [
        (each, is_checked)
        for each, is_checked in schemas(CommitRequest.__pydantic_core_schema__, set())
        if each["type"] in ("list", "tuple", "dict")
    ]
    assert len(collections) >= 12
    unbounded = [
        each
        for each, is_checked in collections
        if not is_checked
        and not each.get("fail_fast")
        and each.get("max_length", MANY) > 100
        and has_errors(each)
    ]
    assert unbounded == []


def has_errors(schema: dict[str, Any]) -> bool:
    """Return whether an element of a collection can be wrong: any JSON value is right."""
    elements = schema.get("values_schema") or schema["items_schema"]
    each = elements if isinstance(elements, list) else [elements]
    return any("JsonValue" not in one.get("schema_ref", "") for one in each)


PLACES: dict[str, Callable[[dict[str, Any]], object]] = {
    "the line": lambda line: line.update(UNKNOWN),
    "the table": lambda line: line["table"].update(UNKNOWN),
    "the producer": lambda line: line["producer"].update(UNKNOWN),
    "the needs": lambda line: line.update(needs=UNKNOWN),
    "a manifest": lambda line: line["manifests"][0].update(UNKNOWN),
    "a key of its own": lambda line: line.update(more=UNKNOWN),
    "a change": lambda line: line.update(changes=[UNKNOWN | {"action": "drop-column"}]),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_line_with_thousands_of_unknown_keys_is_malformed(place: str) -> None:
    line = json.loads(json.dumps(LINE))
    PLACES[place](line)
    error = refusal(content_of(line))
    assert error.reason == Reason.REQUEST_MALFORMED
    assert len(str(error)) < 1_000


def test_a_few_of_thousands_of_unknown_keys_are_named_and_all_are_counted() -> None:
    message = str(refusal(content_of(LINE | UNKNOWN)))
    assert "k0: expected no such key" in message and "k5:" not in message
    assert f"{MANY} keys in all" in message


def test_a_key_of_an_unknown_object_counts_as_well() -> None:
    message = str(refusal(content_of(LINE | {"more": UNKNOWN})))
    assert "more: expected no such key" in message
    assert f"{MANY + 1} keys in all" in message


@pytest.mark.parametrize("key", ["summary", "files", "manifests"])
def test_the_first_of_many_wrong_values_is_named_and_no_other(key: str) -> None:
    values: object = UNKNOWN if key == "summary" else [None] * MANY
    error = refusal(content_of(LINE | {key: values}))
    assert error.reason == Reason.REQUEST_MALFORMED
    assert str(error).count(f"{key}") == 1


def test_a_key_that_is_repeated_a_thousand_times_is_a_repeated_key() -> None:
    text = json.dumps(LINE)
    for repeated in ('"epoch": 0', '"namespace": ["db"]'):
        assert repeated in text
        content = text.replace(repeated, ", ".join([repeated] * MANY)).encode() + b"\n"
        error = refusal(content + GOOD.content[GOOD.body :])
        assert error.reason == Reason.JSON_KEY_REPEATED
        assert str(MANY - 1) in str(error)


def test_a_line_with_thousands_of_keys_of_its_own_is_read_as_ever() -> None:
    files = [{"file-path": f"s3://b/{number}", "content": "data"} for number in range(MANY)]
    request = read_request(content_of(LINE | {"files": files})).request
    assert list(request.files) == files


# --- Objects and lists ---------------------------------------------------------------------------


def test_a_line_has_so_many_objects_and_lists_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    count = containers_written(GOOD.content[: GOOD.body])
    monkeypatch.setattr(request_format, "LINE_CONTAINERS_MAX", count)
    assert read_request(GOOD.content).request == GOOD.request
    nested = LINE | {"files": [{"a": [[]] * 3}]}
    error = refusal(content_of(nested))
    assert error.reason == Reason.REQUEST_TOO_LARGE
    assert f"the limit is {count}" in str(error)


def test_brackets_in_texts_are_no_objects_and_no_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    text = 'a"[{' * 10 + "\\" + "{"
    line = LINE | {"summary": {text: text}}
    count = containers_written(GOOD.content[: GOOD.body])
    monkeypatch.setattr(request_format, "LINE_CONTAINERS_MAX", count + 1)
    assert read_request(content_of(line)).request.summary == {text: text}


# --- Keys ----------------------------------------------------------------------------------------


def test_the_keys_of_the_outermost_object_are_those_that_it_is_written_with() -> None:
    digits = "9" * 10_000
    text = f'{{"a": {{"b": 1}}, "c": [{{"b": {digits}}}, NaN, 1e999], "d": null}}'
    assert outer_keys(text.encode()) == ["a", "c", "d"]
    assert outer_keys(b'{"a": [{"b": 1, "\\u0062": 2}]}') is None
