"""A committer of the version before, as far as the ledger can tell: for upgrades that roll on while
others commit, and are rolled back.

It reads entries of version 1 only, which no frozen producer has, and what it does not know of those
(whom an operator has accepted) is gone when it writes them anew.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import replace
from unittest.mock import patch

from committer.errors import InvalidMetadataError
from committer.ledger_entry import ENTRY_VERSION, FROZEN_ENTRY_VERSION, ProducerEntry, parse_entry
from committer.plan.ledger import ledger

IS_BEFORE: ContextVar[bool] = ContextVar("is_before", default=False)


def parse_as_its_version(text: str) -> ProducerEntry:
    """Parse an entry as the committer does in whose context this is called."""
    entry = parse_entry(text)
    if not IS_BEFORE.get():
        return entry
    if entry.frozen is not None:
        raise InvalidMetadataError(
            f"ledger entry of version {FROZEN_ENTRY_VERSION}, this version reads {ENTRY_VERSION}"
        )
    return replace(entry, accepted=())


def two_versions() -> AbstractContextManager[object]:
    """Let each committer read the ledger as its version does."""
    return patch.object(ledger, "parse_entry", parse_as_its_version)
