"""Counts entries of the inbox that are no requests, logs each once, and never lets one block a
request.

One in the place of a request (a FIFO, a link, a folder, or more bytes than a request may have) is
quarantined by reference: its record says why, and nothing of it is read or moved. Any other is
counted, and stays as well; so is a request that cannot be read, until it can. Bounded: of many the
first ones are named, all are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass

from committer.errors import FrazilError
from committer.ports.skips import SkipKind, Skipped, Skips
from committer.ports.world import World
from committer.reason import Reason
from committer.service.requests.inbox_keys import InboxKey, printable
from committer.service.telemetry.log import log
from committer.service.telemetry.metrics import Metrics
from committer.storage.inbox.inbox import Inbox, Quarantine, QuarantineRecord


@dataclass(eq=False)
class ForeignEntries:
    """Those of one inbox, as its last listing has shown them."""

    inbox: Inbox
    quarantine: Quarantine
    world: World
    metrics: Metrics

    def __post_init__(self) -> None:
        self._named: set[str] = set()

    async def saw(self, skips: Skips, is_ours: Callable[[InboxKey], bool]) -> None:
        """Note the entries that a listing skipped. `is_ours`: whether this committer reports a key;
        one committer reports each.
        """
        _count("inbox", skips, self.metrics)
        named: set[str] = set()
        for one in skips.first:
            # The folder of the inbox itself has no key.
            name = self.inbox.key_of(one.location) or one.location
            if name in self._named:
                named.add(name)
            elif is_ours(key := InboxKey(name)):
                await self._name(key, one)
                named.add(key)
        # An entry that was removed is logged again if it reappears.
        self._named = named

    async def _name(self, key: InboxKey, entry: Skipped) -> None:
        if not _claims_a_place(key, entry.kind):
            _log_entry(key, entry.kind, entry.text)
            return
        is_oversized = entry.kind is SkipKind.OVERSIZED
        try:
            await self.refer(
                key,
                Reason.REQUEST_TOO_LARGE if is_oversized else Reason.REQUEST_NOT_A_FILE,
                entry.text,
            )
        except FrazilError as error:
            text = f"{entry.text}; no record of it can be written: {error}"
            _log_entry(key, entry.kind, text)

    async def refer(self, key: str, reason: Reason, text: str) -> QuarantineRecord:
        """Quarantine by reference. Errors: the storage's."""
        record = QuarantineRecord(
            key=key,
            reason=reason.value,
            message=f"`{printable(self.inbox.location(key))}` is {text}: it stays, unread",
            quarantined_at_ms=self.world.now_ms(),
        )
        if await self.quarantine.refer(record):
            log.warning(
                "request.quarantined", key=key, reason=record.reason, message=record.message
            )
            self.metrics.quarantined(record.reason)
        return record


def show(folder: str, skips: Skips, metrics: Metrics, named: Container[str]) -> frozenset[str]:
    """Count what a listing of another folder has skipped, and name what is new in it.
    Returns what is named now.
    """
    _count(folder, skips, metrics)
    for one in skips.first:
        if one.location not in named:
            _log_entry(one.location, one.kind, one.text)
    return frozenset(one.location for one in skips.first)


def _count(folder: str, skips: Skips, metrics: Metrics) -> None:
    counts = {kind.value: count for kind, count in skips.counts.items()}
    metrics.show_foreign_entries(folder, counts)


# It lands once it can be read: it must not be in quarantine then.
_MAY_BE_A_REQUEST = frozenset({SkipKind.NO_ACCESS, SkipKind.UNREADABLE})


def _claims_a_place(key: InboxKey, kind: SkipKind) -> bool:
    """Return whether it occupies the place of a request, and is none."""
    if kind is SkipKind.OVERSIZED:
        return True
    return kind not in _MAY_BE_A_REQUEST and key.parts is not None


def _log_entry(key: str, kind: SkipKind, text: str) -> None:
    log.warning("inbox.foreign_entry", key=printable(key), kind=kind.value, reason=f"it is {text}")
