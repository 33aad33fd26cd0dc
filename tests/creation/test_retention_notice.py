"""The creator of a table reads how much history it keeps, unless that is their own choice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from committer.creation.create_table import NewTable
from committer.creation.retention_notice import retention_notice
from committer.iceberg.schema.table_text import parse_columns
from committer.ports.catalog_capabilities import CatalogCapabilities
from committer.request.table_identifier import TableIdentifier

CAN = CatalogCapabilities(kind="SQL")
NOTHING: Mapping[str, str] = {}


def flights(properties: Mapping[str, str] = NOTHING) -> NewTable:
    return NewTable(
        identifier=TableIdentifier(("db",), "flights"),
        schema=parse_columns("id long"),
        properties=properties,
    )


def test_a_new_table_says_what_it_keeps_and_how_it_keeps_more() -> None:
    assert retention_notice(flights(), CAN) == (
        "db.flights keeps the newest 5,000 snapshots of each branch and those of the last hour; no"
        " reader and no rollback reaches older ones. For Iceberg's own default of 5 days: frazil"
        " table set db.flights history.expire.max-snapshot-age-ms=432000000"
    )
    few = flights({"history.expire.min-snapshots-to-keep": "10"})
    assert "keeps the newest 10 snapshots of each branch" in retention_notice(few, CAN)


@pytest.mark.parametrize(
    "chosen",
    [
        flights({"history.expire.max-snapshot-age-ms": "1"}),
        flights({"frazil.expire.enabled": "false"}),
        flights({"gc.enabled": "false"}),
    ],
    ids=["an age", "no expiry", "files of others"],
)
def test_what_the_creator_has_chosen_is_not_said(chosen: NewTable) -> None:
    assert retention_notice(chosen, CAN) == ""


def test_a_catalog_that_expires_by_itself_has_rules_of_its_own() -> None:
    assert retention_notice(flights(), replace(CAN, maintains_tables=True)) == ""
