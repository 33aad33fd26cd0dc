"""Tombstones of one-shot producers, and the horizon behind which any of them may have landed."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from committer.errors import InvalidMetadataError
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.updates.metadata_update import RemoveProperties, SetProperties
from committer.ledger_entry import EpochRanges, Freeze, ProducerEntry, property_key
from committer.plan.commit.ledger_changes import LedgerCleanup
from committer.plan.ledger import one_shots
from committer.plan.ledger.ledger import Forgotten, Ledger, NotLanded, Refused
from committer.plan.ledger.one_shots import (
    OneShots,
    TombstoneGroup,
    mark_of,
    may_be_forgotten,
    one_shots_key,
    parse_one_shots,
    print_one_shots,
    read_one_shots,
)
from committer.plan.ledger.state import TableState
from committer.reason import Reason
from committer.request.attempt import nonce_ms, timed_nonce
from committer.request.commit_request import CommitRequest
from committer.request.request_format import EncodedRequest
from tests.support.builders.flights import NOW_MS, build_flights
from tests.support.builders.request_builders import build_line, build_request
from tests.support.plan.committing import Table

TABLE = build_flights()
TABLE_UUID = TABLE.metadata.require_uuid()
NONE = OneShots(TABLE_UUID)
HOUR_MS = 3_600_000


def shot(producer: str, made_ms: int = NOW_MS, **line: object) -> CommitRequest:
    nonce = timed_nonce(made_ms, uuid4())
    return build_line(TABLE, producer=producer, nonce=nonce, **line)  # type: ignore[arg-type]


def _with(properties: dict[str, str]) -> TableMetadata:
    return build_flights(properties=properties, table_uuid=TABLE_UUID).metadata


# --- Nonces --------------------------------------------------------------------------------------


@given(st.integers(0, 2**48 - 1), st.uuids())
def test_a_timed_nonce_is_a_version_7_that_tells_its_time(now_ms: int, random: UUID) -> None:
    nonce = timed_nonce(now_ms, random)
    assert (nonce.version, nonce.variant) == (7, "specified in RFC 4122")
    assert nonce_ms(nonce) == now_ms
    assert str(nonce)[:13].replace("-", "") == f"{now_ms:012x}"


def test_two_nonces_of_one_millisecond_differ_and_other_uuids_tell_no_time() -> None:
    assert len({timed_nonce(NOW_MS, uuid4()) for _ in range(100)}) == 100
    assert nonce_ms(uuid4()) is None
    assert nonce_ms(UUID(int=7 << 76)) is None  # the version of a variant that has none


# --- Tombstones ----------------------------------------------------------------------------------


def test_a_forgotten_producer_is_not_taken_for_a_new_one_whatever_it_sends() -> None:
    known = NONE.with_forgotten({"shot": NOW_MS}, NOW_MS)
    later = shot("shot", NOW_MS + HOUR_MS)
    for again in (shot("shot"), later, build_line(TABLE, producer="shot")):
        assert "was forgotten" in (known.why_unproven(again) or "")
    assert known.why_unproven(shot("another")) is None


def test_tombstones_that_go_raise_the_horizon_to_the_latest_nonce_that_they_stood_for() -> None:
    known = NONE.with_forgotten({"first": NOW_MS - 5, "second": NOW_MS - 9}, NOW_MS)
    known = known.with_forgotten({"third": NOW_MS + HOUR_MS}, NOW_MS + 2 * HOUR_MS)
    assert known.horizon_ms == -1
    after_ms = NOW_MS + one_shots.KEPT_MS + 7 * HOUR_MS
    known = known.with_forgotten({"fourth": after_ms}, after_ms)
    assert known.horizon_ms == NOW_MS + HOUR_MS
    assert [group.count for group in known.groups] == [1]
    for producer, made_ms in (("first", NOW_MS - 5), ("third", NOW_MS + HOUR_MS)):
        assert "the ledger has forgotten" in (known.why_unproven(shot(producer, made_ms)) or "")
    # The horizon cannot tell a new producer from a forgotten one; a younger nonce can.
    assert known.why_unproven(shot("never seen", NOW_MS)) is not None
    assert known.why_unproven(shot("never seen", NOW_MS + HOUR_MS + 1)) is None
    assert known.why_unproven(build_line(TABLE, producer="never seen")) is None


@pytest.mark.thorough
@given(
    st.lists(
        st.tuples(
            st.lists(st.tuples(st.integers(0, 300), st.integers(0, 1_000)), max_size=9),
            st.integers(-3, 60),
        ),
        max_size=12,
    )
)
def test_whatever_was_forgotten_is_never_found_to_be_new(
    steps: list[tuple[list[tuple[int, int]], int]],
) -> None:
    """Of any clock, at any pace: by its tombstone, or by the horizon."""
    known, forgotten, now_ms = NONE, dict[str, int](), NOW_MS
    for producers, hours in steps:
        now_ms += hours * HOUR_MS
        gone = {f"shot-{number}": NOW_MS + made_ms for number, made_ms in producers}
        known = known.with_forgotten(gone, now_ms)
        assert parse_one_shots(print_one_shots(known)) == known
        forgotten |= {name: max(ms, forgotten.get(name, 0)) for name, ms in gone.items()}
    for name, made_ms in forgotten.items():
        assert known.why_unproven(shot(name, made_ms)) is not None


def test_there_are_never_more_tombstones_than_a_metadata_file_may_hold() -> None:
    known, now_ms = NONE, NOW_MS
    for step in range(40):
        now_ms += 1_000
        gone = {f"shot-{step}-{number}": now_ms for number in range(1_500)}
        known = known.with_forgotten(gone, now_ms)
        assert sum(group.count for group in known.groups) <= one_shots.TOMBSTONES_MAX
    assert len(print_one_shots(known)) < 300_000
    # The oldest have expired, in small lots.
    assert NOW_MS + 1_000 < known.horizon_ms < NOW_MS + 25_000
    assert sum(group.count for group in known.groups) > one_shots.TOMBSTONES_MAX * 0.9
    assert known.why_unproven(shot("shot-0-0", NOW_MS + 1_000)) is not None


# --- The property --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        '{"v":2,"table":"TABLE","groups":[]}',
        '{"v":1,"table":"flights","groups":[]}',
        '{"v":1,"table":"TABLE"}',
        '{"v":1,"table":"TABLE","groups":[[1,2]]}',
        '{"v":1,"table":"TABLE","groups":[[1,2,"abc"]]}',
        '{"v":1,"table":"TABLE","groups":[],"horizon-ms":"x"}',
    ],
)
def test_a_property_that_cannot_be_read_lets_no_unknown_producer_land(text: str) -> None:
    text = text.replace("TABLE", str(TABLE_UUID))
    with pytest.raises(InvalidMetadataError):
        parse_one_shots(text)
    found = read_one_shots(_with({"frazil.one-shots": text}))
    assert "`frazil.one-shots` cannot be read" in (found["main"].problem or "")
    answer = Ledger({}, {}, one_shots=found).ask(shot("shot"))
    assert isinstance(answer, Refused)
    assert answer.reason == Reason.PRODUCER_FROZEN
    assert Ledger({}, {}, one_shots=found).ask(shot("shot", branch="audit")) == NotLanded(False)


def test_each_branch_has_its_own_and_a_copied_one_claims_nothing() -> None:
    known = NONE.with_forgotten({"shot": NOW_MS}, NOW_MS)
    stranger = OneShots(UUID(int=1)).with_forgotten({"shot": NOW_MS}, NOW_MS)
    properties = {
        one_shots_key("a/b.c"): print_one_shots(known),
        one_shots_key("main"): print_one_shots(stranger),
        "frazil.one-shots-of-mine": "x",
    }
    found = read_one_shots(_with(properties))
    assert found == {"a/b.c": known}


# --- The ledger's answers ------------------------------------------------------------------------


def asked(request: CommitRequest, entry: ProducerEntry | None, known: OneShots) -> object:
    key = property_key(request.producer.id, request.branch)
    return Ledger({} if entry is None else {key: entry}, {}, one_shots={"main": known}).ask(request)


def test_only_a_producer_of_which_nothing_is_known_to_have_landed_is_looked_up() -> None:
    known = NONE.with_forgotten({"shot": NOW_MS}, NOW_MS)
    request = shot("shot", epoch=1)
    assert isinstance(asked(request, None, known), Forgotten)
    # Entries that an operator's word has made, before anything landed.
    for made in (
        ProducerEntry(TABLE_UUID, one_shot_ms=0),
        ProducerEntry(TABLE_UUID, accepted=((7, UUID(int=7)),)),
    ):
        assert isinstance(asked(request, made, known), Forgotten)
    landed = ProducerEntry(TABLE_UUID, EpochRanges(((0, 0),)))
    assert asked(request, landed, known) == NotLanded(known=True)
    # An operator has let it land once more, behind a rollback.
    thawed = ProducerEntry(TABLE_UUID, one_shot_ms=NOW_MS)
    assert asked(request, thawed, known) == NotLanded(known=True)
    accepted = ProducerEntry(TABLE_UUID, accepted=((1, request.attempt),))
    assert asked(request, accepted, known) == NotLanded(known=False)
    frozen = ProducerEntry(TABLE_UUID, frozen=Freeze("why", 1))
    assert isinstance(asked(request, frozen, known), Forgotten)


def test_of_what_has_a_nonce_of_the_future_nothing_is_forgotten() -> None:
    """Or the horizon would rise to it, and nothing of the present would land any more."""
    assert may_be_forgotten(ProducerEntry(TABLE_UUID, one_shot_ms=NOW_MS), NOW_MS)
    assert not may_be_forgotten(ProducerEntry(TABLE_UUID, one_shot_ms=NOW_MS + 1), NOW_MS)
    assert not may_be_forgotten(ProducerEntry(TABLE_UUID), NOW_MS)


# --- Commits -------------------------------------------------------------------------------------


def test_a_commit_that_drops_an_entry_leaves_its_tombstone_in_the_same_swap() -> None:
    table = Table.of(TABLE)
    for epoch, made_ms in ((0, NOW_MS - 10), (1, NOW_MS - 30)):
        nonce = timed_nonce(made_ms, uuid4())
        table.commit(_right(table, "shot", one_shot=True, epoch=epoch, nonce=nonce))
    cleanup = LedgerCleanup(drop=frozenset({property_key("shot"), property_key("never heard of")}))
    plan = table.commit(_right(table, "other"), cleanup=cleanup)
    metadata = plan.swap.metadata
    assert property_key("shot") not in metadata.properties
    assert read_one_shots(metadata)["main"].groups == (
        TombstoneGroup(table.now_ms, NOW_MS - 10, mark_of("shot")),
    )
    assert table.state.ledger == TableState.of(table.table).ledger
    for epoch in (0, 1, 2):
        assert isinstance(table.state.ledger.ask(shot("shot", epoch=epoch)), Forgotten)
    # A commit that forgets nothing leaves them as they are.
    text = metadata.properties["frazil.one-shots"]
    table.commit(_right(table, "another"))
    assert table.state.metadata.properties["frazil.one-shots"] == text


@pytest.mark.parametrize("is_readable", [True, False])
def test_an_entry_of_which_no_tombstone_can_be_made_stays(is_readable: bool) -> None:
    """Its nonce is of the future, or the tombstones that are there cannot be read."""
    table = Table.of(TABLE)
    table.commit(_right(table, "query-1"))
    made_ms = table.now_ms + HOUR_MS if is_readable else NOW_MS
    nonce = timed_nonce(made_ms, uuid4())
    table.commit(_right(table, "shot", one_shot=True, nonce=nonce))
    if not is_readable:
        table.foreign(SetProperties({"frazil.one-shots": "?"}))
    cleanup = LedgerCleanup(drop=frozenset({property_key("shot")}))
    table.commit(_right(table, "query-1", epoch=1), cleanup=cleanup)
    assert property_key("shot") in table.state.metadata.properties
    table.foreign(RemoveProperties(("frazil.one-shots",)))
    table.now_ms += HOUR_MS
    table.commit(_right(table, "query-1", epoch=2), cleanup=cleanup)
    assert property_key("shot") not in table.state.metadata.properties
    assert isinstance(table.state.ledger.ask(shot("shot")), Forgotten)


def _right(table: Table, producer: str, **line: object) -> EncodedRequest:
    return build_request(table.table, producer=producer, partition=("AA",), **line)  # type: ignore[arg-type]  # passed through
