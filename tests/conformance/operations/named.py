"""The named operations of the pairs and sequences that Iceberg Java has answered, as steps.

Each is what the program beside the lines (`M.java`, `N.java`) asks of Java, key by key.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.conformance.operations.case import Case, Step
from tests.conformance.operations.random_cases import RECORDS, with_positions

IN_A = {"type": "eq", "term": "p", "value": "a"}
# Three appends.
BASE_STEPS = 3


@dataclass(frozen=True, slots=True)
class _Asked:
    """Where a named operation is asked for: the names of its files begin with `tag`."""

    version: int
    partitioned: bool
    start: int
    tag: str

    def data(self, suffix: str = "") -> Step:
        return {"name": self.tag + suffix, "at": self.at}

    @property
    def at(self) -> str:
        return "p=a" if self.partitioned else ""

    def checked(self, level: str, **step: object) -> Step:
        return {"from": self.start, "level": level, **step}


_Make = Callable[[_Asked], Step]


def named_step(name: str, *, version: int, partitioned: bool, start: int, tag: str) -> Step:
    """Return the step of a named operation; `start`: how many steps it has seen."""
    return _NAMED[name](_Asked(version, partitioned, start, tag))


def is_named(name: str) -> bool:
    return name in _NAMED


def base_case(name: str, version: int, *, partitioned: bool, then: tuple[Step, ...]) -> Case:
    """Return the case with these steps after the three appends of the base."""
    files = (("a1", "a"), ("a2", "a"), ("b1", "b"))
    base = (
        {"do": "append", "fast": True, "add": [{"name": file, "at": f"p={p}" * partitioned}]}
        for file, p in files
    )
    return Case(name, version, "p" if partitioned else "none", {}, (*base, *then))


def _overwrite(level: str | None = None) -> _Make:
    def make(asked: _Asked) -> Step:
        step = {"do": "overwrite", "filter": IN_A, "add": [asked.data()]}
        return step if level is None else step | asked.checked(level)

    return make


def _copy_on_write(file: str, level: str) -> _Make:
    def make(asked: _Asked) -> Step:
        step = {"do": "overwrite", "remove": [file], "add": [asked.data()]}
        return step | asked.checked(level, **{"conflict-filter": IN_A})

    return make


def _replace_partitions(level: str | None = None) -> _Make:
    def make(asked: _Asked) -> Step:
        step = {"do": "replace-partitions", "add": [asked.data()]}
        return step if level is None else step | asked.checked(level)

    return make


def _merge_on_read(file: str, level: str, *, update: bool) -> _Make:
    def make(asked: _Asked) -> Step:
        delete = {"name": asked.tag + "d", "at": asked.at, "kind": "position"}
        if asked.version >= 3:
            # Another row for each letter: vectors of two operations have disjoint rows.
            row = ord(asked.tag[0]) % RECORDS
            delete = with_positions({**delete, "kind": "dv", "of": file}, [row])
        step = asked.checked(level, **{"conflict-filter": IN_A})
        step |= {"do": "row-delta", "exist": [file], "add-deletes": [delete]}
        return step | ({"update": True, "add": [asked.data("n")]} if update else {})

    return make


def _upsert(*, with_data: bool) -> _Make:
    def make(asked: _Asked) -> Step:
        delete = {"name": asked.tag + "e", "at": asked.at, "kind": "equality"}
        step = {"do": "row-delta", "add-deletes": [delete]}
        return step | ({"add": [asked.data()]} if with_data else {})

    return make


def _rewrite(*files: str, number: int | None = None) -> _Make:
    def make(asked: _Asked) -> Step:
        step = {"do": "rewrite", "from": asked.start, "remove": [*files], "add": [asked.data()]}
        return step | ({"number": number} if number else {})

    return make


_NAMED: dict[str, _Make] = {
    "append a": lambda asked: {"do": "append", "add": [asked.data()]},
    "ow filter a none": _overwrite(),
    "ow filter a snap": _overwrite("snapshot"),
    "ow filter a ser": _overwrite("serializable"),
    "cow a1 snap": _copy_on_write("a1", "snapshot"),
    "cow a1 ser": _copy_on_write("a1", "serializable"),
    "cow a2 ser": _copy_on_write("a2", "serializable"),
    "cow a2 snap": _copy_on_write("a2", "snapshot"),
    "replp a none": _replace_partitions(),
    "replp a snap": _replace_partitions("snapshot"),
    "replp a ser": _replace_partitions("serializable"),
    "delete p=a": lambda _: {"do": "delete", "filter": IN_A},
    "delete a1": lambda _: {"do": "delete", "remove": ["a1"]},
    "delete a1 must": lambda _: {"do": "delete", "remove": ["a1"], "must-exist": True},
    "mor DELETE a1 snap": _merge_on_read("a1", "snapshot", update=False),
    "mor DELETE a1 ser": _merge_on_read("a1", "serializable", update=False),
    "mor DELETE a2 snap": _merge_on_read("a2", "snapshot", update=False),
    "mor UPDATE a1 snap": _merge_on_read("a1", "snapshot", update=True),
    "mor UPDATE a1 ser": _merge_on_read("a1", "serializable", update=True),
    "mor UPDATE a2 snap": _merge_on_read("a2", "snapshot", update=True),
    "upsert eq a": _upsert(with_data=True),
    "eq only a": _upsert(with_data=False),
    "rewrite a1a2": _rewrite("a1", "a2"),
    "rewrite a1a2 seq": _rewrite("a1", "a2", number=3),
    "rewrite manifests": lambda _: {"do": "rewrite-manifests"},
    "rewrite a1": _rewrite("a1"),
    "rewrite a1 seq": _rewrite("a1", number=3),
    "rewrite a2": _rewrite("a2"),
}
