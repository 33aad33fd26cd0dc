"""Cases for what random ones seldom meet: holes of Iceberg Java, labels, empty changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.conformance.operations.case import Case, Step

_IN_A = {"type": "eq", "term": "p", "value": "a"}
_NOWHERE = {"type": "eq", "term": "p", "value": "nowhere"}


def _append(*names: str, at: str = "p=a", spec: int = 0) -> Step:
    add = [{"name": name, "at": at, "spec": spec} for name in names]
    return {"do": "append", "fast": True, "add": add}


def _file(name: str, at: str = "p=a") -> Step:
    return {"name": name, "at": at, "spec": 0}


def _delete(name: str, kind: str, of: str | None = None, **more: Any) -> Step:
    return _file(name) | {"kind": kind} | ({"of": of} if of else {}) | more


def _vector(name: str, of: str, *positions: int) -> Step:
    return _delete(name, "dv", of, positions=[*positions], size=40 + 2 * len(positions))


def _row_delta(*deletes: Step, **more: Any) -> Step:
    return {"do": "row-delta", "add-deletes": [*deletes], **more}


def _case(name: str, *steps: Step, version: int = 2, **properties: str) -> Case:
    return Case(f"directed: {name} v{version}", version, "p", properties, steps)


def directed_cases() -> Iterator[Case]:
    yield from _holes()
    yield from _starts()
    for version in (1, 2, 3):
        yield from _labels(version)


def _holes() -> Iterator[Case]:
    yield _case(
        "an equality delete beside a rewrite with a number",
        *(_append("f1"), _row_delta(_delete("d2", "equality")), _append("f3")),
        {"do": "rewrite", "from": 1, "number": 1, "remove": ["f1"], "add": [_file("f4")]},
    )
    yield _case(
        "position deletes become a vector beside a DELETE",
        *(
            _append("f1"),
            _row_delta(_delete("d2", "position", "f1")),
            {"do": "upgrade", "version": 3},
        ),
        _row_delta(_vector("d3", "f1", 3), **{"from": 3, "exist": ["f1"], "level": "snapshot"}),
        {
            "do": "rewrite",
            "from": 3,
            "remove-deletes": ["d2"],
            "add-deletes": [_vector("d4", "f1", 4)],
        },
    )
    yield _case(
        "a second vector without removal of the first",
        *(_append("f1"), _row_delta(_vector("d2", "f1", 2))),
        _row_delta(_vector("d3", "f1", 3), **{"from": 2, "level": "snapshot"}),
        version=3,
    )
    yield _case(
        "vectors without a start on expired history",
        *(_append("f1"), _append("f2"), {"do": "expire"}),
        _row_delta(_vector("d3", "f1", 3), add=[_file("f3")]),
        version=3,
    )
    yield _case(
        "deletes of a file that never was",
        _append("f1"),
        _row_delta(
            _delete("d2", "position"), **{"from": 1, "exist": ["never"], "level": "snapshot"}
        ),
    )
    yield _case(
        "deletes of a file that was replaced",
        *(_append("f1"), {"do": "overwrite", "remove": ["f1"], "add": [_file("f2")]}),
        _row_delta(
            _delete("d3", "position", "f1"), **{"from": 1, "exist": ["f1"], "level": "snapshot"}
        ),
    )
    yield _case(
        "a removal after a compaction",
        *(_append("f1"), _append("f2")),
        {
            "do": "rewrite",
            "from": 2,
            "remove": ["f1", "f2"],
            "add": [_file("f3") | {"records": 20}],
        },
        {"do": "delete", "remove": ["f1"]},
    )
    yield _case(
        "files of another spec in replaced partitions",
        *(_append("f1"), {"do": "change-spec", "add": ["bucket"]}, _append("f2")),
        {
            "do": "replace-partitions",
            "from": 1,
            "level": "serializable",
            "add": [{"name": "f3", "at": "p=a/id_bucket=1", "spec": 1}],
        },
    )
    yield _case(
        "a file that came and went",
        *(_append("f1"), _append("f2")),
        {"do": "delete", "remove": ["f2"]},
        _row_delta(
            _delete("d4", "position", "f1"),
            **{"from": 1, "exist": ["f1"], "level": "serializable", "conflict-filter": _IN_A},
        ),
    )


def _starts() -> Iterator[Case]:
    yield _case(
        "a rewrite from before a rollback",
        *(_append("f1"), _append("f2"), {"do": "roll-back", "step": 1}),
        {"do": "rewrite", "from": 2, "remove": ["f1"], "add": [_file("f4")]},
        version=1,
    )
    yield _case(
        "a rewrite of a file that came with deletes after the start",
        *(_append("f1"), _row_delta(_delete("d2", "equality"), add=[_file("f2")])),
        {"do": "rewrite", "from": 1, "remove": ["f2"], "add": [_file("f3")]},
    )
    yield _case(
        "a partition that has deletes only must be empty",
        *(_append("f1"), _append("f2", at="p=b"), _row_delta(_delete("d3", "equality"))),
        {"do": "delete", "remove": ["f1"]},
        {"do": "replace-partitions", "append-only": True, "add": [_file("f5")]},
    )


def _labels(version: int) -> Iterator[Case]:
    overwrites: tuple[tuple[str, Step], ...] = (
        ("adds", {"add": [_file("f3")]}),
        ("removes", {"remove": ["f1"]}),
        ("adds, and a filter that matches nothing", {"add": [_file("f3")], "filter": _NOWHERE}),
        ("a filter that matches nothing", {"filter": _NOWHERE}),
        ("adds, and a filter that is false", {"add": [_file("f3")], "filter": False}),
        ("removes all", {"filter": True}),
    )
    for name, step in overwrites:
        change = {"do": "overwrite", **step}
        yield _case(f"overwrite {name}", _append("f1", "f2"), change, version=version)
    for filter in (_NOWHERE, False, True):
        change = {"do": "delete", "filter": filter}
        yield _case(f"delete by {filter}", _append("f1", "f2"), change, version=version)
    yield _case(
        "row delta removes data",
        *(_append("f1", "f2"), {"do": "row-delta", "remove": ["f1"]}),
        version=version,
    )
    equality = _row_delta(_delete("d2", "equality"), add=[_file("f3")])
    yield _case("row delta deletes and adds", _append("f1", "f2"), equality, version=version)
    if version > 1:
        yield _case(
            "row delta adds data and removes deletes",
            *(_append("f1"), _row_delta(_delete("d2", "equality"))),
            {"do": "row-delta", "remove-deletes": ["d2"], "add": [_file("f3")]},
            version=version,
        )
    if version == 3:
        positions = _row_delta(_delete("d2", "position", "f1"))
        yield _case("position deletes", _append("f1"), positions, version=version)
