"""`frazil table accept`, without a committer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from committer.plan.ledger.high_water_mark import (
    HighWaterMark,
    parse_high_water_mark,
    print_high_water_mark,
)
from committer.plan.ledger.state import TableState
from committer.service.process.composition import Parts
from committer.storage.inbox.high_water_mark_objects import HighWaterMarks
from tests.support.cli.cli_commands import answer, create, set_property
from tests.support.cli.commands import Frazil


def write(frazil: Frazil, content: bytes) -> None:
    table_uuid = frazil.load().metadata.require_uuid()

    async def work(parts: Parts) -> None:
        high_water_marks = HighWaterMarks(parts.storage, parts.settings.inbox)
        etag = await high_water_marks.etag(table_uuid)
        await high_water_marks.replace(table_uuid, content, etag=etag)

    frazil.with_parts(work)


def high_water_mark(frazil: Frazil) -> HighWaterMark:
    table_uuid = frazil.load().metadata.require_uuid()

    async def work(parts: Parts) -> bytes:
        return await HighWaterMarks(parts.storage, parts.settings.inbox).get(table_uuid)

    return parse_high_water_mark(frazil.with_parts(work), table_uuid)


def fall_behind(frazil: Frazil) -> HighWaterMark:
    """Raise the high-water mark above the table's state."""
    state = TableState.of(frazil.load())
    ahead = replace(HighWaterMark.of(state, accepted_ms=2**60), sequence_number=7, snapshot_id=70)
    write(frazil, print_high_water_mark(ahead))
    return ahead


def test_a_table_that_went_backwards_is_shown_and_accepted(frazil: Frazil) -> None:
    create(frazil)
    table = frazil.load()
    before = fall_behind(frazil)
    accepted = frazil("table", "accept", "db.flights", "--yes", "--json")
    assert accepted.code == 0
    assert "its last sequence number is 0" in accepted.err
    assert accepted.object["missing"] == [
        "its last sequence number is 0, and snapshot 70 was committed with 7"
    ]
    assert accepted.object["metadata_location"] == table.metadata_location
    # Later than the one before, although the clock is not.
    now = high_water_mark(frazil)
    assert now.accepted_ms == accepted.object["accepted_ms"] == before.accepted_ms + 1
    assert now.sequence_number == 0
    again = frazil("table", "accept", "db.flights", "--yes")
    assert (again.code, again.out) == (0, "")
    assert "last sequence number 0, no snapshot\n" in again.err
    assert "lacks nothing that the high-water mark knows: unless" in again.err


@pytest.mark.parametrize("text", ["", "n"])
def test_a_table_is_not_accepted_without_a_yes(
    frazil: Frazil, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    create(frazil)
    before = fall_behind(frazil)
    answer(monkeypatch, text)
    refused = frazil("table", "accept", "db.flights")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.endswith("nothing was changed\n")
    assert high_water_mark(frazil) == before


def test_a_high_water_mark_that_nobody_can_read_is_replaced(frazil: Frazil) -> None:
    create(frazil)
    write(frazil, b"{")
    accepted = frazil("table", "accept", "db.flights", "--yes")
    assert accepted.code == 0
    assert "cannot be read" in accepted.err
    assert high_water_mark(frazil).accepted_ms > 0


def test_a_table_that_changes_before_the_yes_is_not_accepted(
    frazil: Frazil, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(frazil)
    before = fall_behind(frazil)
    changed = False

    def change(question: str, *, needed: bool) -> None:
        nonlocal changed
        assert needed
        changed = True
        set_property(frazil, "touched", "yes")

    monkeypatch.setattr("committer.cli.tables.table_accept.confirm", change)
    assert frazil("table", "accept", "db.flights").code == 1
    assert changed
    assert high_water_mark(frazil) == before


# --- All at once ---------------------------------------------------------------------------------


def reasoned(frazil: Frazil) -> list[tuple[str, str, str]]:
    lines = frazil("audit", "--json").lines
    accepted = [one for one in lines if one["action"] == "table accept"]
    return [(one["table"], one["outcome"], one["reason"]) for one in accepted]


def test_a_dry_run_of_all_names_the_tables_that_lack_commits_and_changes_nothing(
    frazil: Frazil,
) -> None:
    create(frazil)
    create(frazil, "db.well")
    before = fall_behind(frazil)
    shown = frazil("table", "accept", "--all", "--dry-run", "--json")
    assert shown.code == 0
    assert [one["table"] for one in shown.lines] == ["db.flights"]
    assert "nothing was accepted; 1 table would be" in shown.err
    assert "db.well" not in shown.err
    assert high_water_mark(frazil) == before
    assert reasoned(frazil) == []


def test_all_that_lack_commits_are_accepted_with_a_reason(frazil: Frazil) -> None:
    create(frazil)
    create(frazil, "db.well")
    fall_behind(frazil)
    assert frazil("table", "accept", "--all", "--yes").code == 2
    accepted = frazil("table", "accept", "--all", "--yes", "--reason", "restored from a backup")
    assert accepted.code == 0
    assert "lacks: its last sequence number is 0" in accepted.err
    assert accepted.err.endswith("accepted db.flights\n")
    assert high_water_mark(frazil).sequence_number == 0
    assert reasoned(frazil) == [("db.flights", "done", "restored from a backup")]
    again = frazil("table", "accept", "--all", "--yes", "--reason", "again")
    assert (again.code, again.err) == (0, "nothing was accepted; 0 tables would be\n")


@pytest.mark.parametrize("typed", ["", "n"])
def test_all_are_asked_about_first(
    frazil: Frazil, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    create(frazil)
    before = fall_behind(frazil)
    answer(monkeypatch, typed)
    refused = frazil("table", "accept", "--all", "--reason", "a test")
    assert refused.code == 1
    assert "Accept 1 table?" in refused.err
    assert high_water_mark(frazil) == before


@pytest.mark.parametrize("words", [(), ("db.flights", "--all", "--reason", "a test")])
def test_a_table_or_all_of_them_is_named(frazil: Frazil, words: tuple[str, ...]) -> None:
    create(frazil)
    assert frazil("table", "accept", *words).code == 2
