"""Whatever stands in the needs of a request: it is good, or it has a reason."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from committer.errors import InvalidRequestError
from committer.plan.batch.request_check import CheckBasis, Checker
from committer.reason import Reason
from committer.request.needs import Needs
from committer.request.request_format import read_request, seal_request
from tests.support.builders.bad_requests import entry, file_of, hand_over
from tests.support.builders.flights import build_flights
from tests.support.builders.request_builders import build_line, seal

TABLE = build_flights()
LINE = build_line(TABLE)
SEALED = seal(LINE, [hand_over(TABLE, entry(file_of(TABLE, LINE)))])
CHECKER = Checker(CheckBasis.of("frazil", TABLE.metadata), TABLE.metadata.current_schema)

OPERATIONS = ("append", "overwrite", "replace-partitions", "row-delta", "rewrite-files", "delete")
_WORDS = st.sampled_from(
    ("id", "carrier", "day", "delay", "DELAY", "", "a.b", "eq", "in", "bucket[0]", "day", "1")
)
_LITERALS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**64), 2**64),
    st.floats(),
    _WORDS,
    st.text(max_size=20),
)
_TERMS = st.one_of(
    _WORDS,
    st.fixed_dictionaries(
        {
            "type": st.sampled_from(("transform", "reference", "x")),
            "term": _WORDS,
            "transform": st.sampled_from(
                (
                    "bucket[4]",
                    "bucket[0]",
                    "day",
                    "hour",
                    "truncate[2]",
                    "truncate[-1]",
                    "void",
                    "x",
                )
            ),
        }
    ),
)
_KINDS = st.sampled_from(
    (
        *("eq", "not-eq", "lt", "lt-eq", "gt", "gt_eq", "in", "not-in", "is-null", "not-null"),
        *("is-nan", "starts-with", "and", "or", "not", "true", "literal", "LIKE"),
    )
)
_LEAVES = st.fixed_dictionaries(
    {"type": _KINDS},
    optional={"term": _TERMS, "value": _LITERALS, "values": st.lists(_LITERALS, max_size=4)},
)
FILTERS = st.recursive(
    st.one_of(_LEAVES, _LITERALS),
    lambda inner: st.fixed_dictionaries(
        {"type": _KINDS}, optional={"left": inner, "right": inner, "child": inner}
    ),
    max_leaves=8,
)
_NUMBERS = st.one_of(st.integers(-2, 2**64), _LITERALS)
_PATHS = st.lists(st.one_of(st.sampled_from(("a", "b", "s3://b/x")), _LITERALS), max_size=3)
_DELETES = st.lists(
    st.one_of(
        _LITERALS,
        st.fixed_dictionaries(
            {},
            optional={
                "file-path": _LITERALS,
                "content-offset": _NUMBERS,
                "content-size-in-bytes": _NUMBERS,
            },
        ),
    ),
    max_size=2,
)
_GROUPS = st.lists(
    st.fixed_dictionaries({}, optional={"removed-data-files": _PATHS, "added-data-files": _PATHS}),
    max_size=2,
)
_SPECIAL: dict[str, st.SearchStrategy[Any]] = {
    "row-filter": FILTERS,
    "conflict-filter": FILTERS,
    "removed-data-files": _PATHS,
    "referenced-data-files": _PATHS,
    "rewritten-manifests": _PATHS,
    "removed-delete-files": _DELETES,
    "groups": _GROUPS,
    "isolation-level": st.sampled_from(("serializable", "snapshot", "none", 1)),
}
_NAMES = [name.replace("_", "-") for name in Needs.model_fields]
NEEDS = st.fixed_dictionaries({}, optional={name: _SPECIAL.get(name, _NUMBERS) for name in _NAMES})


@pytest.mark.thorough
@pytest.mark.thorough
@settings(max_examples=400)
@given(st.sampled_from(OPERATIONS), NEEDS)
def test_any_needs_are_good_or_have_a_reason(operation: str, needs: dict[str, object]) -> None:
    head, _, body = SEALED.content.partition(b"\n")
    document = json.loads(head) | {"operation": operation, "needs": needs}
    _check(json.dumps(document).encode() + b"\n" + body)


@pytest.mark.thorough
@pytest.mark.thorough
@settings(max_examples=400)
@given(FILTERS, st.booleans())
def test_any_filter_is_good_or_has_a_reason(filter: object, case_sensitive: bool) -> None:
    head, _, body = SEALED.content.partition(b"\n")
    needs = {"row-filter": filter, "case-sensitive": case_sensitive}
    document = json.loads(head) | {"operation": "overwrite", "needs": needs}
    _check(json.dumps(document).encode() + b"\n" + body)


@pytest.mark.thorough
@pytest.mark.thorough
@settings(max_examples=200)
@given(st.binary(max_size=200))
def test_any_bytes_as_needs_have_a_reason(content: bytes) -> None:
    line = seal_request(LINE).content[:-2]
    _check(line + b',"needs":' + content + b"}\n")


def _check(content: bytes) -> None:
    try:
        CHECKER.check(read_request(content))
    except InvalidRequestError as error:
        assert error.reason in set(Reason)
        assert len(str(error)) > 10
        assert error.reason != Reason.PLAN_FAILED
