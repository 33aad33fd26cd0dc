"""A soak of some seconds: all that a long one does, with every kind of fault."""

from __future__ import annotations

from itertools import islice

import pytest

from tests.soak.chaos import FaultKind, strikes
from tests.soak.soak import Plan, soak

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.heavy, pytest.mark.timeout(180)]

PLAN = Plan(
    play_s=10.0,
    producers=20,
    tables=4,
    replicas=2,
    requests_per_s=20.0,
    pause_s=0.1,
    lease_s=2.0,
    strikes_min=len(FaultKind),
)


async def test_under_every_blow_each_request_lands_once_and_nothing_grows() -> None:
    story = await soak(PLAN)
    assert not story.violations
    assert len(story.exact) == PLAN.tables
    assert all(one.receipts for one in story.exact.values())
    drawn = strikes(PLAN.seed, pause_s=PLAN.pause_s, lease_s=PLAN.lease_s)
    assert [fault for _, fault in story.struck] == [
        each.kind for each in islice(drawn, len(story.struck))
    ]
    told = ", ".join(f"{at_s:.1f} s {fault}" for at_s, fault in story.struck)
    print(f"{len(story.ends)} publications, {story.commits} commits; {told}; {story.events}")
    assert {fault for _, fault in story.struck} == set(FaultKind)
