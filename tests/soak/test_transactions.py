"""The trial of transactions, in some seconds: the same requests, but fewer, and one kill."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.soak.drawn_transactions import Kind, kinds, rivals_count
from tests.soak.transactions import Trial, run


def test_a_third_is_in_conflict_and_each_rival_has_its_other() -> None:
    drawn = kinds(random.Random(1), 200)
    counts = Counter(kind for group in drawn for kind in group)
    assert counts.total() == 200
    assert counts[Kind.RIVALS] + counts[Kind.STALE] == 200 // 3
    assert sum(group == (Kind.RIVALS, Kind.RIVALS) for group in drawn) == rivals_count(200)
    assert set(counts) == set(Kind)


@pytest.mark.server
@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "kill_every_s",
    [pytest.param(0.0, marks=pytest.mark.heavy, id="undisturbed"), pytest.param(2.0, id="killed")],
)
async def test_each_transaction_is_on_all_of_its_tables_or_none(kill_every_s: float) -> None:
    """How long they wait is not asserted here: the machine may be busy."""
    trial = Trial(transactions=24, transactions_per_s=8.0, kill_every_s=kill_every_s)
    findings = await run(trial)
    print(*findings.lines(), sep="\n")
    assert findings.violations == []
    assert findings.drained_s is not None
    assert bool(findings.kills) == bool(kill_every_s)
