"""The garbage of attempts: the proof in the table's history, and files that attempts share."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from committer.iceberg.updates.metadata_update import SetProperties
from committer.plan.commit.attempt_garbage import Fate, SentAttempt, fate_of, judge
from committer.ports.pointer_swap import LoadedTable
from tests.support.builders.flights import build_flights, changed

MERGED = "memory://warehouse/db/flights/metadata/merged-m0.avro"
SHARED = "memory://warehouse/db/flights/metadata/batch-m0.avro"


def history(length: int) -> list[LoadedTable]:
    """Return a table after each of some commits."""
    tables = [build_flights(table_uuid=UUID(int=1))]
    for number in range(length):
        tables.append(changed(tables[-1], SetProperties({"n": str(number)})))
    return tables


def attempt(base: LoadedTable, name: str, *manifests: str, may_land: bool = False) -> SentAttempt:
    folder = "memory://warehouse/db/flights/metadata"
    metadata_file, manifest_list = f"{folder}/{name}.metadata.json", f"{folder}/snap-{name}.avro"
    return SentAttempt(
        base.metadata_location,
        base.metadata.last_sequence_number,
        metadata_file,
        (manifest_list,),
        (manifest_list, metadata_file),
        frozenset(manifests),
        may_land,
    )


def test_an_attempt_is_dead_once_another_commit_stands_behind_its_base() -> None:
    tables = history(4)
    for base in tables[:4]:
        assert fate_of(attempt(base, "x"), tables[4]) is Fate.DEAD
    assert fate_of(attempt(tables[4], "x"), tables[4]) is Fate.UNPROVEN


@pytest.mark.parametrize("place", range(1, 5))
def test_an_attempt_whose_metadata_file_is_or_was_current_has_landed(place: int) -> None:
    tables = history(4)
    landed = attempt(tables[place - 1], "x")
    landed = replace(landed, metadata_location=tables[place].metadata_location)
    assert fate_of(landed, tables[4]) is Fate.LANDED


def test_of_a_base_that_the_log_does_not_have_nothing_is_known() -> None:
    tables = history(4)
    cut = replace(tables[4].metadata, metadata_log=tables[4].metadata.metadata_log[2:])
    assert fate_of(attempt(tables[0], "x"), replace(tables[4], metadata=cut)) is Fate.UNPROVEN
    assert fate_of(attempt(tables[2], "x"), replace(tables[4], metadata=cut)) is Fate.DEAD


def test_where_the_catalog_names_metadata_files_the_log_proves_nothing() -> None:
    tables = history(2)
    sent = attempt(tables[0], "x")
    sent = replace(sent, own_files=sent.manifest_lists)
    assert fate_of(sent, tables[2]) is Fate.UNPROVEN


def test_what_attempts_share_goes_only_with_the_last_of_them() -> None:
    tables = history(3)
    dead, doubted = attempt(tables[0], "a", SHARED), attempt(tables[1], "b", SHARED, may_land=True)
    unproven = attempt(tables[3], "c", SHARED)
    sure, in_doubt = judge([dead, doubted], (), tables[3]).garbage
    assert (sure.own_files, sure.manifests, sure.bases) == (dead.own_files, (), ())
    assert in_doubt.manifests == (SHARED,)
    assert in_doubt.own_files == doubted.own_files
    assert in_doubt.bases == (tables[1].metadata_location,)
    judged = judge([dead, unproven], (), tables[3])
    assert [one.manifests for one in judged.garbage] == [()]
    assert judged.in_use == {SHARED}
    assert judge([dead], (), tables[3]).garbage[0].manifests == (SHARED,)


def test_a_superseded_merge_goes_unless_an_attempt_may_have_landed_with_it() -> None:
    tables = history(3)
    assert judge([], {MERGED}, tables[3]).garbage[0].manifests == (MERGED,)
    assert judge([], {MERGED}, tables[3], stay={MERGED}).garbage == ()
    unproven = attempt(tables[3], "a", MERGED)
    assert judge([unproven], {MERGED}, tables[3]).garbage == ()
    (in_doubt,) = judge(
        [attempt(tables[0], "a", MERGED, may_land=True)], {MERGED}, tables[3]
    ).garbage
    assert (in_doubt.manifests, in_doubt.bases) == ((MERGED,), (tables[0].metadata_location,))


def test_a_merge_that_is_on_offer_stays_although_an_attempt_with_it_is_dead() -> None:
    tables = history(3)
    (garbage,) = judge([attempt(tables[0], "a", MERGED)], (), tables[3], stay={MERGED}).garbage
    assert garbage.manifests == ()
