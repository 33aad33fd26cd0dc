"""Every operation against every other that has landed since its base, with the answers of Iceberg
Java; where the answer is better, Java's stands behind a slash, as in `-/newdel`.
"""

from __future__ import annotations

import pytest

from tests.plan.worlds import OPERATIONS, build_world

pytestmark = pytest.mark.thorough

# What has landed. Each cell of a row is the answer to one of these.
LANDED = (
    "append a",
    "upsert eq a",
    "eq only a",
    "mor DELETE a1 snap",
    "mor DELETE a2 snap",
    "mor UPDATE a1 snap",
    "mor UPDATE a2 snap",
    "delete a1 must",
    "delete p=a",
    "cow a1 snap",
    "cow a2 snap",
    "ow filter a none",
    "rewrite a1",
    "rewrite a2",
)

# `-`: it lands. Positions of vectors are compared by `produce`: for `validate` they all land.
SAME = {
    "append a": "- - - - - - - - - - - - - -",
    "upsert eq a": "- - - - - - - - - - - - - -",
    "ow filter a none": "- - - - - - - - - - - - - -",
    "replp a none": "- - - - - - - - - - - - - -",
    "delete p=a": "- - - - - - - - - - - - - -",
    "delete a1 must": "- - - - - - - missing missing missing - missing missing -",
    "ow filter a snap": (
        "- newdel newdel newdel newdel newdel newdel"
        " deleted deleted deleted deleted deleted deleted deleted"
    ),
    "ow filter a ser": (
        "added added newdel newdel newdel added added"
        " deleted deleted added added added deleted deleted"
    ),
    "replp a snap": (
        "- newdel newdel newdel newdel newdel newdel"
        " deleted deleted deleted deleted deleted deleted deleted"
    ),
    "replp a ser": (
        "added added newdel newdel newdel added added"
        " deleted deleted added added added deleted deleted"
    ),
}
V2 = SAME | {
    "cow a1 snap": (
        "- filedel filedel filedel filedel filedel filedel"
        " missing missing missing - missing missing -"
    ),
    "cow a1 ser": (
        "added added filedel filedel filedel added added"
        " missing missing added added added missing -"
    ),
    "mor DELETE a1 snap": ("- - - - - newdel/- newdel/- exist/- exist/- exist - exist exist -"),
    "mor DELETE a1 ser": (
        "added added - - - added added exist/- exist/- exist added exist exist -"
    ),
    "mor UPDATE a1 snap": (
        "- newdel newdel newdel newdel newdel newdel exist exist exist - exist exist -"
    ),
    "mor UPDATE a1 ser": (
        "added added newdel newdel newdel added added exist exist exist added exist exist -"
    ),
    "rewrite a1": (
        "- filedel filedel filedel filedel filedel filedel"
        " missing missing missing - missing missing -"
    ),
    "rewrite a1 seq": (
        "- - - filepos filepos filepos filepos missing missing missing - missing missing -"
    ),
}
V3 = SAME | {
    "cow a1 snap": (
        "- filedel filedel filedel - filedel - missing missing missing - missing missing -"
    ),
    "cow a1 ser": (
        "added added filedel filedel - added added missing missing added added added missing -"
    ),
    "mor DELETE a1 snap": "- - - -/dv - -/dv - exist/- exist/- exist - exist exist -",
    "mor DELETE a1 ser": (
        "added added - -/dv - added added exist/- exist/- exist added exist exist -"
    ),
    "mor UPDATE a1 snap": (
        "- newdel newdel -/newdel -/newdel -/newdel -/newdel exist exist exist - exist exist -"
    ),
    "mor UPDATE a1 ser": (
        "added added newdel newdel newdel added added exist exist exist added exist exist -"
    ),
    "rewrite a1": (
        "- filedel filedel filedel - filedel - missing missing missing - missing missing -"
    ),
    "rewrite a1 seq": "- - - filepos - filepos - missing missing missing - missing missing -",
}


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("name", V2)
def test_each_operation_has_its_answer_to_what_has_landed(name: str, version: int) -> None:
    expected = {2: V2, 3: V3}[version][name].split()
    found = [_answer(version, landed, name) for landed in LANDED]
    assert found == [one.partition("/")[0] for one in expected]


def _answer(version: int, landed: str, name: str) -> str:
    world = build_world(version)
    base = world.base
    change = OPERATIONS[name](world, base, "B")
    world.land(OPERATIONS[landed](world, base, "A"))
    return world.code(change) or "-"
