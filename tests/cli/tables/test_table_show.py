"""`frazil table show`: the ledger is counted for people, and whole for programs."""

from __future__ import annotations

from committer.ledger_entry import property_key
from tests.support.cli.cli_commands import create, set_property
from tests.support.cli.commands import Frazil

ONE_SHOTS = "frazil.one-shots"


def test_the_ledger_is_a_count_of_producers_and_no_property(frazil: Frazil) -> None:
    create(frazil)
    assert "frazil producer list" not in frazil("table", "show", "db.flights").out
    keys = (property_key("query-1"), property_key("query-1", "audit"), property_key("query-2"))
    for key in (*keys, ONE_SHOTS):
        set_property(frazil, key, "{}")
    shown = frazil("table", "show", "db.flights").out
    assert "2 producers: see frazil producer list db.flights" in shown
    assert "frazil.producer" not in shown
    assert ONE_SHOTS not in shown
    assert "frazil.expire.enabled" in shown
    properties = frazil("table", "show", "db.flights", "--json").object["properties"]
    assert {*keys, ONE_SHOTS} <= properties.keys()


def test_the_ledger_of_a_bare_file_is_counted_without_a_command(frazil: Frazil) -> None:
    create(frazil)
    set_property(frazil, property_key("query-1"), "{}")
    shown = frazil("table", "show", "--metadata", frazil.load().metadata_location).out
    assert "1 producer\n" in shown
