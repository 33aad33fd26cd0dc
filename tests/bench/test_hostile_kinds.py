"""The requests of `bench.hostile`: one of each kind, under a key of its own."""

from __future__ import annotations

import pytest

from bench.hostile_kinds import KINDS, hostile_request
from committer.ports.pointer_swap import LoadedTable
from committer.request.request_key import parse_inbox_key
from committer.request.table_identifier import TableIdentifier
from tests.support.integration.real_harness import flights


@pytest.mark.thorough
@pytest.mark.parametrize("producer", ["hostile-1", "hostile-once-2"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_request_of_each_kind_is_made_for_either_sort_of_producer(
    kind: str, producer: str
) -> None:
    location = "file:///warehouse/db/t0"
    metadata = flights(location, format_version=2)
    table = LoadedTable(TableIdentifier(("db",), "t0"), metadata, f"{location}/v0.metadata.json")
    made = hostile_request(kind, table, producer, 0)
    named = parse_inbox_key(made.key)
    assert (named.producer, named.epoch) == (producer, 0)
    assert len(made.content) > 100_000
