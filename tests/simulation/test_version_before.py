"""Committers of two versions read one ledger, each in its way."""

from __future__ import annotations

from contextvars import copy_context
from uuid import UUID

import pytest

from committer.errors import InvalidMetadataError
from committer.ledger_entry import EpochRanges, Freeze, ProducerEntry, print_entry
from committer.plan.ledger import ledger
from tests.simulation.version_before import IS_BEFORE, two_versions

ENTRY = ProducerEntry(UUID(int=1), EpochRanges(((0, 7),)))
FROZEN = print_entry(ProducerEntry(UUID(int=1), frozen=Freeze("why", 17)))
ACCEPTED = print_entry(ProducerEntry(UUID(int=1), accepted=((7, UUID(int=2)),)))


def read(text: str) -> ProducerEntry:
    """Parse an entry as the ledger does."""
    entry = vars(ledger)["parse_entry"](text)
    assert isinstance(entry, ProducerEntry)
    return entry


def read_before(text: str) -> ProducerEntry:
    context = copy_context()
    context.run(IS_BEFORE.set, True)
    return context.run(read, text)


def test_the_version_before_reads_what_it_knows_and_forgets_the_rest() -> None:
    with two_versions():
        assert read_before(print_entry(ENTRY)) == ENTRY
        assert read_before(ACCEPTED).accepted == ()
        with pytest.raises(InvalidMetadataError, match="entry of version 2"):
            read_before(FROZEN)


def test_beside_it_and_afterwards_the_present_version_reads_all() -> None:
    with two_versions():
        read_before(ACCEPTED)
        assert read(ACCEPTED).accepted
        assert read(FROZEN).frozen
    assert read_before(FROZEN).frozen
