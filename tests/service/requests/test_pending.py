"""The stages of a request: changed by its owner alone, and only as the table of them says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from committer.errors import InvariantError
from committer.service.requests import large_requests
from committer.service.requests import pending as pending_module
from committer.service.requests.inbox_keys import InboxKey
from committer.service.requests.large_requests import NamedManifests
from committer.service.requests.pending import ENDS, TRANSITIONS, Pending, Stage, Waiting
from tests.support.builders.request_builders import build_request
from tests.support.builders.table_builders import build_table
from tests.support.clock.virtual_time import LoopWorld
from tests.support.life_of_a_request import page_rows

ROOT = Path(__file__).parents[3]
SERVICE = ROOT / "committer/service"
# The ways from arrival to an end; each stage is on one of them.
WAYS = [
    [Stage.CHECKED, Stage.IN_FLIGHT, Stage.LANDED],
    [Stage.CHECKED, Stage.IN_FLIGHT, Stage.CHECKED, Stage.RETURNED],
    [Stage.CHECKED, Stage.JOINED, Stage.IN_FLIGHT, Stage.JOINED, Stage.CHECKED, Stage.DUPLICATE],
    [Stage.CHECKING, Stage.RECEIVED, Stage.QUARANTINED],
    [Stage.DEFERRED, Stage.RECEIVED, Stage.LEFT_BEFORE],
    [Stage.CHECKED, Stage.IN_FLIGHT, Stage.DUPLICATE],
]


def waiting_one(stage: Stage = Stage.RECEIVED) -> tuple[Waiting, Pending]:
    world = LoopWorld()
    sealed = build_request(build_table(warehouse="memory://warehouse"))
    waiting = Waiting(world, NamedManifests(world))
    waiting.add(Pending(InboxKey(sealed.key), sealed, 0, stage=stage))
    return waiting, next(waiting.all())


@pytest.mark.parametrize("way", WAYS, ids=[way[-1].value for way in WAYS])
def test_each_way_to_an_end_follows_the_table(way: list[Stage]) -> None:
    for before, after in zip([Stage.RECEIVED, *way], way, strict=False):
        assert after in TRANSITIONS[before]
    assert TRANSITIONS[way[-1]] == frozenset()
    assert {stage for one in WAYS for stage in one} == set(Stage)


@pytest.mark.parametrize("end", [stage for stage in Stage if stage in ENDS])
@pytest.mark.parametrize("stage", [Stage.RECEIVED, Stage.CHECKED, Stage.IN_FLIGHT])
def test_a_request_ends_from_a_stage_that_leads_there_and_from_no_other(
    stage: Stage, end: Stage
) -> None:
    waiting, pending = waiting_one(stage)
    if end in TRANSITIONS[stage]:
        assert waiting.end(pending.key, end).stage is end
        assert pending.key not in waiting
    else:
        with pytest.raises(InvariantError, match=f"is {stage.value}: not {end.value} now"):
            waiting.end(pending.key, end)
        assert (pending.stage, pending.key in waiting) == (stage, True)


def test_nothing_in_flight_is_returned_and_nothing_else_lands() -> None:
    assert Stage.RETURNED not in TRANSITIONS[Stage.IN_FLIGHT]
    assert [one for one in Stage if Stage.LANDED in TRANSITIONS[one]] == [Stage.IN_FLIGHT]
    waiting, pending = waiting_one(Stage.IN_FLIGHT)
    assert list(waiting.evict(lambda _: True)) == []
    assert waiting.find(pending.key) is pending


def test_the_page_has_the_table_of_transitions() -> None:
    told = {
        stage.strip("`"): set(re.findall(r"`([^`]+)`", following))
        for stage, _, following in page_rows("Stages")
    }
    known = {one.value: {after.value for after in TRANSITIONS[one]} for one in Stage}
    assert told == known


def test_only_its_owner_changes_a_request() -> None:
    """No module beside `pending.py` assigns to an attribute that a request has, of anything but
    `self`. Except the owner of the arrivals, which cannot know a request: `pending.py` imports it.
    """
    assigned = {
        path.relative_to(SERVICE).as_posix()
        for path in SERVICE.rglob("*.py")
        for name, attribute in assignments(ast.parse(path.read_text()))
        if name != "self" and attribute in Pending.__dataclass_fields__
    }
    assert assigned == {"requests/pending.py", "requests/large_requests.py"}
    assert not hasattr(large_requests, "Pending")


def test_within_its_module_waiting_alone_changes_a_request() -> None:
    tree = ast.parse(Path(pending_module.__file__).read_text())
    outside = [node for node in tree.body if getattr(node, "name", "") != Waiting.__name__]
    assert [one for node in outside for one in assignments(node)] == []
    assert {attribute for _, attribute in assignments(tree)} > {"stage", "conflict"}


def test_each_form_of_an_assignment_is_found() -> None:
    text = "a.b = 1; a.c, a.d = e; a.f += 1; del a.g; setattr(a, 'h', 1)\nfor a.i in e: pass"
    assert {attribute for _, attribute in assignments(ast.parse(text))} == set("bcdfghi")


def assignments(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the object and the attribute of each assignment."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=value, attr=attribute, ctx=ast.Store() | ast.Del()):
                yield ast.unparse(value), attribute
            case ast.Call(
                func=ast.Name("setattr") | ast.Attribute(attr="__setattr__"),
                args=[*_, value, ast.Constant(str(attribute)), _],
            ):
                yield ast.unparse(value), attribute
