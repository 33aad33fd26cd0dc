"""`frazil producer` and `frazil quarantine replay --force`, without a committer."""

from __future__ import annotations

import io
from uuid import UUID

import pytest

from committer.iceberg.metadata.snapshot import SnapshotRef
from committer.iceberg.updates.metadata_update import SetSnapshotRef
from committer.ledger_entry import (
    EpochRanges,
    Landed,
    ProducerEntry,
    parse_entry,
    print_entry,
    property_key,
)
from committer.request.request_key import published_key
from tests.support.cli.cli_commands import (
    add_branch,
    add_snapshots,
    change,
    create,
    request,
    set_property,
)
from tests.support.cli.commands import Frazil

LOST = Landed(3, "spark-offsets", "f", UUID(int=3), 99, 1)


def put_entry(frazil: Frazil, *, producer: str = "query-1", lost: bool = False) -> None:
    """Write a producer that has landed epochs 0 to 3. `lost`: the last in an expired snapshot."""
    entry = ProducerEntry(frazil.load().metadata.require_uuid(), EpochRanges(((0, 3),)))
    if lost:
        entry = entry.with_landed(LOST)
    set_property(frazil, property_key(producer), print_entry(entry))


def entry_of(frazil: Frazil, producer: str = "query-1") -> ProducerEntry:
    return parse_entry(frazil.load().metadata.properties[property_key(producer)])


def test_producers_are_listed_with_their_state(frazil: Frazil) -> None:
    create(frazil)
    put_entry(frazil, producer="b", lost=True)
    put_entry(frazil, producer="a")
    set_property(frazil, property_key("c"), "no entry")
    lines = frazil("producer", "list", "db.flights", "--json").lines
    assert [(one["producer"], one["state"], one["epochs"]) for one in lines] == [
        ("a", "active", "0-3"),
        ("b", "rolled-back", "0-3"),
        ("c", "unreadable", ""),
    ]
    listed = frazil("producer", "list", "db.flights", "--branch", "main", "--json").lines
    assert len(listed) == 3
    assert "rolled-back" in frazil("producer", "list", "db.flights").out


def test_a_producer_is_frozen_with_a_reason_and_thawed(frazil: Frazil) -> None:
    create(frazil)
    put_entry(frazil)
    frazil.put(request(frazil, epoch=9))
    said = frazil(
        "producer", "freeze", "db.flights", "query-1", "--reason", "bad numbers", "--json"
    ).object
    assert (said["state"], said["waiting_requests"]) == ("frozen", 1)
    assert said["reason"] == "an operator froze the producer: bad numbers"
    assert "frazil producer thaw" in said["advice"]
    answer = frazil("producer", "thaw", "db.flights", "query-1")
    assert (answer.code, answer.err) == (0, "")
    assert entry_of(frazil).frozen is None
    assert str(entry_of(frazil).epochs) == "0-3"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("",), "producer"),
        (("..",), "expected 1 to 200 characters"),
        (("é" * 100,), "expected 1 to 200 characters"),
        (("query-1", "--branch", ""), "--branch"),
    ],
)
def test_a_name_that_no_request_can_have_is_not_frozen(
    frazil: Frazil, arguments: tuple[str, ...], said: str
) -> None:
    create(frazil)
    answer = frazil("producer", "freeze", "db.flights", *arguments)
    assert answer.code == 2
    assert said in answer.err
    assert frazil("producer", "list", "db.flights", "--json").lines == []


def test_a_branch_that_is_not_there_is_named_and_no_producer_of_it_frozen(frazil: Frazil) -> None:
    create(frazil)
    add_snapshots(frazil, 1)
    add_branch(frazil, "a", 1)
    change(frazil, SetSnapshotRef("t", SnapshotRef(1, "tag")))
    for branch in ("nope", "t"):
        for command in (("freeze", "db.flights", "query-1"), ("list", "db.flights")):
            answer = frazil("producer", *command, "--branch", branch)
            assert (answer.code, answer.out) == (1, "")
            assert answer.err == (
                f"frazil: table `db.flights` has no branch `{branch}`: it has a, main\n"
            )
    assert frazil("producer", "list", "db.flights", "--branch", "a", "--json").lines == []
    assert frazil("producer", "freeze", "db.flights", "query-1", "--branch", "a").code == 0


def test_a_removed_branch_that_the_ledger_has_is_known_still(frazil: Frazil) -> None:
    create(frazil)
    text = print_entry(ProducerEntry(frazil.load().metadata.require_uuid()))
    set_property(frazil, property_key("other", "gone"), text)
    (one,) = frazil("producer", "list", "db.flights", "--branch", "gone", "--json").lines
    assert one["producer"] == "other"
    assert frazil("producer", "freeze", "db.flights", "query-1", "--branch", "gone").code == 0


def test_show_says_why_a_rollback_froze_it_and_what_may_be_done(frazil: Frazil) -> None:
    create(frazil)
    put_entry(frazil, lost=True)
    out = frazil("producer", "show", "db.flights", "query-1").out
    for text in (
        "rolled-back",
        "snapshot 99",
        "--skip-lost",
        "--redo-lost",
        "query-1 of db.flights",
    ):
        assert text in out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "--skip-lost (they never land) or --redo-lost"),
        (("--redo-lost",), "name --epochs"),
        (("--skip-lost", "--redo-lost"), "not both"),
        (("--skip-lost", "--epochs", "3"), "--redo-lost"),
        (("--redo-lost", "--epochs", "3-1"), "--epochs: epoch ranges out of order"),
        (("--redo-lost", "--epochs", ""), "--epochs: expected epochs such as 40-42,44, found ``"),
        (("--redo-lost", "--epochs", "3-"), "expected epochs such as 40-42,44, found `3-`"),
    ],
)
def test_a_thaw_after_a_rollback_leaves_nothing_to_guess(
    frazil: Frazil, options: tuple[str, ...], said: str
) -> None:
    create(frazil)
    put_entry(frazil, lost=True)
    answer = frazil("producer", "thaw", "db.flights", "query-1", "--yes", *options)
    assert answer.code == 2
    assert said in " ".join(answer.err.split())
    assert entry_of(frazil).latest == (LOST,)


@pytest.mark.parametrize(
    ("options", "epochs", "said"),
    [
        (("--skip-lost",), "0-3", "their rows stay away"),
        (("--redo-lost", "--epochs", "2-3"), "0-1", "Epochs 2-3 may land once more, when they are"),
        (("--redo-lost", "--epochs", "3"), "0-2", "Epoch 3 may land once more, when it is"),
    ],
)
def test_a_thaw_after_a_rollback_says_what_becomes_of_the_epochs(
    frazil: Frazil, options: tuple[str, ...], epochs: str, said: str
) -> None:
    create(frazil)
    put_entry(frazil, lost=True)
    answer = frazil("producer", "thaw", "db.flights", "query-1", "--yes", "--json", *options)
    assert (answer.object["state"], answer.object["epochs"]) == ("active", epochs)
    assert said in answer.err


def test_an_epoch_that_never_landed_is_refused_before_anything_is_asked(frazil: Frazil) -> None:
    create(frazil)
    put_entry(frazil, lost=True)
    answer = frazil("producer", "thaw", "db.flights", "query-1", "--redo-lost", "--epochs", "3,7")
    assert (answer.code, answer.out) == (1, "")
    assert (
        "frazil: epoch 7 of producer `query-1` on branch `main` of table db.flights" in answer.err
    )
    assert "Thaw?" not in answer.err
    assert entry_of(frazil).latest == (LOST,)


def test_a_thaw_of_a_producer_that_is_not_frozen_says_so(frazil: Frazil) -> None:
    create(frazil)
    put_entry(frazil)
    answer = frazil("producer", "thaw", "db.flights", "query-1", "--json")
    assert (answer.code, answer.object["state"]) == (0, "active")
    assert answer.err == "`query-1` is not frozen\n"


def test_a_producer_is_forgotten_unless_something_of_it_waits(frazil: Frazil) -> None:
    create(frazil)
    put_entry(frazil)
    waiting = request(frazil, epoch=9)
    frazil.put(waiting)
    answer = frazil("producer", "forget", "db.flights", "query-1", "--yes")
    assert answer.code == 1
    assert waiting.request.inbox_key in answer.err
    frazil.with_parts(lambda parts: parts.inbox.delete([waiting.request.inbox_key]))
    answer = frazil("producer", "forget", "db.flights", "query-1", "--yes")
    assert (answer.code, answer.out) == (0, "")
    assert "epochs 0-3" in answer.err
    assert property_key("query-1") not in frazil.load().metadata.properties
    answer = frazil("producer", "show", "db.flights", "query-1")
    assert (answer.code, answer.out) == (1, "")
    assert "no producer `query-1`" in answer.err


def test_what_the_ledger_alone_is_against_is_accepted_and_replayed(frazil: Frazil) -> None:
    create(frazil)
    put_entry(frazil)
    wanted = request(frazil, epoch=3)
    key = frazil.quarantine(wanted, "epoch_content_differs")
    other = frazil.quarantine(request(frazil, epoch=4), "path_not_allowed")
    answer = frazil("quarantine", "replay", "--force", "--all", "--table", "db.flights", "--yes")
    assert (answer.code, answer.out) == (1, key + "\n")
    assert f"{other} stays in quarantine: its reason is path_not_allowed" in answer.err
    assert list(map(published_key, frazil.outstanding())) == [key]
    assert entry_of(frazil).accepted == ((3, wanted.request.attempt),)


def test_what_was_refused_again_after_a_replay_is_accepted_or_refused_by_its_own_key(
    frazil: Frazil,
) -> None:
    create(frazil)
    put_entry(frazil)
    wanted = request(frazil, epoch=3)
    again = frazil.quarantine(wanted.replayed(UUID(int=1)), "epoch_content_differs")
    answer = frazil("quarantine", "replay", "--force", str(wanted.request.attempt), "--yes")
    assert (answer.code, answer.out) == (0, again + "\n")
    assert entry_of(frazil).accepted == ((3, wanted.request.attempt),)
    (waiting,) = frazil.outstanding()
    assert waiting != again
    assert published_key(waiting) == wanted.request.inbox_key
    frazil("table", "drop", "db.flights", "--yes")
    create(frazil)
    held = frazil.quarantine(wanted.replayed(UUID(int=2)), "producer_frozen")
    answer = frazil("quarantine", "replay", "--force", "--all", "--yes")
    assert (answer.code, answer.out) == (1, "")
    assert f"{held} stays in quarantine: the table of that name has another uuid" in answer.err
    assert frazil.quarantined() == [held]


@pytest.mark.parametrize("is_there", [False, True])
def test_only_what_can_be_accepted_is_asked_about(
    frazil: Frazil, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    """Refuse before the prompt, which has no answer here; an accepted call would prompt."""
    create(frazil)
    put_entry(frazil)
    reason = frazil.quarantine(request(frazil, epoch=4), "path_not_allowed")
    files = frazil.quarantine(request(frazil, epoch=2), "producer_frozen", has_files=False)
    wanted = []
    if is_there:
        wanted = [frazil.quarantine(request(frazil, epoch=3), "epoch_content_differs")]
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    answer = frazil("quarantine", "replay", "--force", "--all")
    assert (answer.code, answer.out) == (1, "")
    assert f"{reason} stays in quarantine: its reason is path_not_allowed" in answer.err
    assert f"{files} stays in quarantine: its data file `" in answer.err
    assert ("Replay? [y/N]" in answer.err) == is_there
    assert ("rows of 1 request" in answer.err) == is_there
    assert set(frazil.quarantined()) == {reason, files, *wanted}
    assert entry_of(frazil).accepted == ()


def test_an_accepted_request_whose_table_is_gone_stays_in_quarantine(frazil: Frazil) -> None:
    create(frazil)
    key = frazil.quarantine(request(frazil), "producer_frozen")
    frazil("table", "drop", "db.flights", "--yes")
    answer = frazil("quarantine", "replay", "--force", key, "--yes")
    assert (answer.code, answer.out) == (1, "")
    assert frazil.quarantined() == [key]


@pytest.mark.parametrize(
    ("filters", "is_found"),
    [
        (("--older-than", "1d"), True),
        (("--older-than", "99999d"), False),
        (("--younger-than", "1h"), False),
        (("--younger-than", "99999d", "--older-than", "90s"), True),
    ],
)
def test_the_quarantine_is_filtered_by_age(
    frazil: Frazil, filters: tuple[str, ...], is_found: bool
) -> None:
    create(frazil)
    frazil.quarantine(request(frazil), "unsupported", quarantined_at_ms=1_700_000_000_000)
    assert bool(frazil("quarantine", "list", "--json", *filters).lines) == is_found
    assert bool(frazil("quarantine", "replay", "--all", *filters).out) == is_found


def test_an_age_is_read_strictly(frazil: Frazil) -> None:
    answer = frazil("quarantine", "list", "--older-than", "3 days")
    assert answer.code == 2
    assert "90s, 30min, 12h or 3d" in answer.err
