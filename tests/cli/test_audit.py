"""`frazil audit`: who changed what, why, and the state before and after; and that a change which
the audit cannot hold is not made.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from committer.cli.context.operator_audit import operator_name
from tests.support.cli.cli_commands import create, request
from tests.support.cli.commands import Frazil


def entries(frazil: Frazil, *options: str) -> list[dict[str, Any]]:
    return frazil("audit", "--json", *options).lines


def test_a_change_of_a_table_has_who_what_why_before_and_after(frazil: Frazil) -> None:
    create(frazil)
    before = frazil.load().metadata_location
    changed = frazil(
        *("table", "set", "db.flights", "history.expire.max-snapshot-age-ms=60000"),
        *("--reason", "ticket 7"),
    )
    assert changed.code == 0
    created, found = entries(frazil)
    assert (created["action"], created["outcome"], created["before"]) == (
        "table create",
        "done",
        None,
    )
    assert found["who"] == operator_name()
    assert (found["action"], found["table"], found["reason"]) == (
        "table set",
        "db.flights",
        "ticket 7",
    )
    key = "history.expire.max-snapshot-age-ms"
    assert found["outcome"] == "done"
    assert found["before"] == {"metadata_location": before, "properties": {key: "3600000"}}
    assert found["after"]["properties"] == {key: "60000"}
    shown = frazil("audit").out
    for text in ("table set", "ticket 7", operator_name()):
        assert text in shown


def test_what_failed_is_recorded_with_its_error(frazil: Frazil) -> None:
    create(frazil)
    assert frazil("table", "rename", "db.flights", "nowhere.flights", "--yes").code == 1
    assert frazil("table", "set", "db.none", "a=b").code == 1
    renamed, not_set = entries(frazil)[1:]
    assert (renamed["action"], renamed["outcome"]) == ("table rename", "failed")
    assert "nowhere" in renamed["error"]
    assert (not_set["action"], not_set["outcome"]) == ("table set", "failed")
    assert frazil.load() is not None


def test_decisions_about_a_producer_are_recorded_with_its_state(frazil: Frazil) -> None:
    create(frazil)
    place = ("db.flights", "query-1")
    assert frazil("producer", "freeze", *place, "--reason", "bad numbers").code == 0
    assert frazil("producer", "thaw", *place, "--yes", "--reason", "mended").code == 0
    assert frazil("producer", "forget", *place, "--yes").code == 0
    frozen, thawed, forgotten = entries(frazil, "--producer", "query-1")
    assert (frozen["before"]["state"], frozen["after"]["state"]) == ("active", "frozen")
    assert (thawed["reason"], thawed["after"]["state"]) == ("mended", "active")
    assert (forgotten["action"], forgotten["reason"]) == ("producer forget", None)
    assert {one["outcome"] for one in (frozen, thawed, forgotten)} == {"done"}


def test_each_request_that_is_replayed_or_discarded_is_recorded(frazil: Frazil) -> None:
    create(frazil)
    replayed = frazil.quarantine(request(frazil, epoch=1), "table_unknown")
    without_files = frazil.quarantine(request(frazil, epoch=2), "unsupported", has_files=False)
    assert frazil("quarantine", "replay", "--all", "--reason", "repaired").code == 1
    assert frazil("quarantine", "discard", without_files, "--yes", "--reason", "unwanted").code == 0
    first, refused, discarded = entries(frazil)[1:]
    assert (first["key"], first["outcome"], first["reason"]) == (replayed, "done", "repaired")
    assert first["before"]["quarantine_reason"] == "table_unknown"
    assert (refused["key"], refused["outcome"]) == (without_files, "failed")
    assert "does not exist" in refused["error"]
    assert (discarded["action"], discarded["key"]) == ("quarantine discard", without_files)
    assert (discarded["epoch"], discarded["producer"]) == (2, "query-1")
    assert discarded["table"] == "db.flights"


def test_a_reason_code_is_no_reason_for_the_audit(frazil: Frazil) -> None:
    """It was the filter once: without it, all requests would be discarded."""
    create(frazil)
    key = frazil.quarantine(request(frazil), "table_unknown")
    answer = frazil("quarantine", "discard", "--all", "--yes", "--reason", "unsupported")
    assert answer.code == 2
    assert "--code unsupported" in answer.err
    assert frazil.quarantined() == [key]


def test_a_change_that_the_audit_cannot_hold_is_not_made(frazil: Frazil, tmp_path: Path) -> None:
    create(frazil)
    key = frazil.quarantine(request(frazil), "table_unknown")
    location = frazil.load().metadata_location
    audit = tmp_path / "requests" / "audit"
    audit.rename(tmp_path / "kept")
    audit.write_text("no folder")
    assert frazil("table", "set", "db.flights", "a=b").code != 0
    assert frazil("producer", "freeze", "db.flights", "query-1").code != 0
    assert frazil("quarantine", "discard", key, "--yes").code != 0
    assert frazil.load().metadata_location == location
    assert frazil.quarantined() == [key]
    audit.unlink()
    (tmp_path / "kept").rename(audit)
    assert len(entries(frazil)) == 1


def test_what_was_asked_is_filtered_and_an_empty_audit_says_so(frazil: Frazil) -> None:
    assert "no such entry" in frazil("audit").err
    create(frazil)
    create(frazil, "db.other")
    assert [one["table"] for one in entries(frazil, "--table", "db.other")] == ["db.other"]
    assert len(entries(frazil, "--who", operator_name(), "--younger-than", "1h")) == 2
    assert entries(frazil, "--who", "nobody-else") == []


def test_an_interrupted_command_has_an_unknown_outcome(
    frazil: Frazil, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(frazil)

    async def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("committer.service.admin.table_change.send_swap", interrupted)
    assert frazil("table", "set", "db.flights", "a=b", "--reason", "a test").code == 130
    (entry,) = entries(frazil)[1:]
    assert (entry["action"], entry["outcome"], entry["reason"]) == (
        "table set",
        "unknown",
        "a test",
    )
