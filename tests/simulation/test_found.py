"""Bugs that the simulation has found in the service: each with its seed.

A seed means the same as long as scenarios are drawn the same way, and the service asks for the same
things in the same order: so what was mended has a test of its own beside the code, too, and seeds
that have come to mean something else are joined by others that show the same.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.simulation.catalogs import SimCatalog
from tests.simulation.faults import Fault
from tests.simulation.pace import SPARSE
from tests.simulation.scenario import draw_scenario, draw_without_groups
from tests.simulation.simulation import Outcome, Simulation

FOUND = {
    4: "a second write of one micro-batch was taken for the first, which had just landed",
    177: "a doorbell whose object could not be read for a moment was never acknowledged",
    235: "doorbells held of a shard that was lost and regained were never delivered again",
    749: "a committer that was told to end during an exchange about leases waited for the next one",
    65: "quarantined from the inbox while the queue was away, then landed by its doorbell",
    273: "a quarantining that was cut off, whose reason went away, landed from the inbox",
    836: "as 65",
    942: "a one-shot request that came again landed twice: its snapshot had expired",
    1710: "as 942, and a clock that jumped",
    2584: "a request that was replayed while its quarantining stood still was acknowledged",
    1117: "a shard that was lost and back before its tables had ended left doorbells pending",
}
# At the pace that is drawn for them.
FOUND_SINCE = {
    33: "doorbells held of a shard that was lost and regained were never delivered again",
    239: "the judge excused no part of a transaction whose landing an operator had forgotten",
    210003274: "a snapshot was picked again, whose pick had expired: its files were listed twice",
    852: "requests that waited for one that never landed were planned again without end",
    60000077: "doorbells taken over with a shard that was lost and regained were never delivered",
    108: "a one-shot request that came again landed twice: its entry had gone early",
    162: "a quarantining that was cut off, whose reason went away, landed from the inbox",
    1036: "landed while the record of its quarantining, whose write had no answer, was to come",
    7767: "landed once more after a rollback, when an expiry had deleted its data files",
    7001097: "as 7767",
    90000580: "landed twice: a ledger was unset ahead of its high-water mark, the table replaced",
    90004596: "the judge counted a landing that was rolled back and thawed beside its successor",
    120000983: "a simulated committer that was stopped before its life began never came back",
    140004405: "a second write of one micro-batch was taken for the first, whose ledger was unset",
    150000640: "the ledger forgot what an operator had accepted, and kept the older content",
    160003524: "the judge compared a file, which an operator had land twice, with its other entry",
    170004349: "the judge excused no landing of which other engines had removed every proof",
    190000037: "an expiry of all snapshots, of which none had a branch, crashed each time",
    190002104: "a request that came while the table was loaded conflicted with what was loaded",
    170000569: "the judge knew no replay that its operator had begun and never ended",
    571: "replayed while its quarantining was cut off: landed, and was quarantined once more",
    1085: "the replays of a transaction were planned again without end, and never sent",
    3001755: "landed by a second doorbell that rang late, after it had gone to quarantine",
    410000290: "a rewrite took a file that was removed and adopted again for the one of its base",
    410002644: "a record of a replay that lands was written once more, and stayed in quarantine",
    420001533: "the judge excused no staged file that an operator had land once more",
    450001924: "the judge knew no rewrite of files that came again behind its base",
    450002703: "the judge knew no duplicate of a landing that an operator had just written off",
    480001876: "the judge excused no receipt of a landing that another engine had unset",
    480002247: "the judge expected requests behind the open breaker of a frozen producer to end",
    490004354: "a frozen table was called for each transaction that it had joined before",
    560004865: "the judge knew no staged snapshot that became its branch's head, and was thawed",
    550004319: "the judge knew no receipt of a landing that an operator had just written off",
    540001963: "the answer to a command stayed, refused here and landed by another committer",
    410001189: "a doorbell by the shard of another table of its transaction was never acknowledged",
}
# These fail still when their mend is taken out; the others are in `make test-servers`.
STILL_SHOWN = {33, 108, 162, 7767, 3001755}


def play_long(seed: int) -> Outcome:
    """Play a seed twice as long: some of these came late. With several committers, the catalog
    refuses nothing, as it was then.
    """
    scenario = draw_without_groups(seed, SPARSE)
    weights = dict(scenario.weights)
    if scenario.replicas > 1:
        weights[Fault.REJECTED] = 0.0
    return Simulation(replace(scenario, weights=weights, play_s=scenario.play_s * 2)).run()


@pytest.mark.simulation
@pytest.mark.heavy
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", FOUND)
def test_what_was_found_stays_mended(seed: int) -> None:
    run = play_long(seed)
    assert not run.violations, f"once: {FOUND[seed]}; now: {run.violations[0]}"


FOUND_ON = {
    (SimCatalog.REST, 139): "entries were removed between two commits, which moves no head",
}


@pytest.mark.simulation
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("kind", "seed"), FOUND_ON)
def test_what_was_found_on_a_kind_of_catalog_stays_mended(kind: SimCatalog, seed: int) -> None:
    run = Simulation(draw_without_groups(seed, catalog=kind)).run()
    assert not run.violations, f"once: {FOUND_ON[kind, seed]}; now: {run.violations[0]}"


@pytest.mark.simulation
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(seed, marks=() if seed in STILL_SHOWN else pytest.mark.heavy)
        for seed in FOUND_SINCE
    ],
)
def test_what_was_found_since_stays_mended(seed: int) -> None:
    run = Simulation(draw_without_groups(seed)).run()
    assert not run.violations, f"once: {FOUND_SINCE[seed]}; now: {run.violations[0]}"


# With the transactions of `groups`. One that shows what another does is in `make test-servers`.
FOUND_WITH_GROUPS = {
    12: "the tables of a transaction waited for one another for a minute (I23)",
    47: "as 12",
    91: "as 12, two minutes long",
    2000137: "a request was refused for a conflict that an own commit had ended since (I10)",
    2000333: "a transaction whose time was up was not looked at for half a minute more (I23)",
    2000105: "a discarded request counted as one that its transaction has (the check of I23)",
    3000086: "a queue that denied a doorbell was a crash of its transaction",
}


@pytest.mark.simulation
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(seed, marks=pytest.mark.heavy if what.startswith("as ") else ())
        for seed, what in FOUND_WITH_GROUPS.items()
    ],
)
def test_what_was_found_with_groups_stays_mended(seed: int) -> None:
    run = Simulation(draw_scenario(seed)).run()
    assert not run.violations, f"once: {FOUND_WITH_GROUPS[seed]}; now: {run.violations[0]}"
