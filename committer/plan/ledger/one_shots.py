"""One-shot producers that the ledger has forgotten: why none of their requests lands twice.

The entry of a one-shot producer expires a while after its request has left the inbox, and leaves a
tombstone: 48 bits of a hash of its id. Tombstones expire too, oldest first, and raise the horizon
to their latest nonce time: a request of an unknown producer whose nonce is not younger than the
horizon may have landed. The nonce is bound into the attempt, and so into the names of the data
files: a client cannot make a landed file younger. All of it is one table property for each branch,
`frazil.one-shots` (other branches than main: `frazil.one-shots@<branch>`), and changes in the swap
that removes the entries. Pure, with its text form:

    {"v":1,"table":"<uuid>","horizon-ms":<ms>,"groups":[[<begun ms>,<latest nonce ms>,"<marks>"],…]}
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from urllib.parse import quote, unquote
from uuid import UUID

import orjson

from committer.errors import InvalidMetadataError
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.ledger_entry import MAIN, ProducerEntry
from committer.request.attempt import nonce_ms
from committer.request.commit_request import CommitRequest

PREFIX = "frazil.one-shots"
VERSION = 1
# A batch write may take so long from its nonce to its publication, and a request may wait in
# quarantine so long.
KEPT_MS = 7 * 24 * 3_600_000
# Eight bytes each, in every metadata file: 256 KiB.
TOMBSTONES_MAX = 32_768
# Tombstones that expire together.
_GROUP_MS = KEPT_MS // 28
_GROUP_MAX = TOMBSTONES_MAX // 32
_MARK_CHARACTERS = 8


@dataclass(frozen=True, slots=True)
class TombstoneGroup:
    """Tombstones that were made within some hours. `nonce_ms`: the latest nonce time of all."""

    begun_ms: int
    nonce_ms: int
    marks: str

    @property
    def count(self) -> int:
        return len(self.marks) // _MARK_CHARACTERS


@dataclass(frozen=True)
class OneShots:
    """The forgotten one-shot producers of one branch. `problem`: why the property cannot be read;
    nothing is known to be new then.
    """

    table_uuid: UUID
    horizon_ms: int = -1
    groups: tuple[TombstoneGroup, ...] = ()
    problem: str | None = None

    def has_tombstone(self, producer: str) -> bool:
        """Return whether a producer has landed and was forgotten,
        and its tombstone is still there."""
        return mark_of(producer) in self._marks

    def why_unproven(self, request: CommitRequest) -> str | None:
        """Return why a request of a producer that the ledger does not know may have landed."""
        if self.has_tombstone(request.producer.id):
            return "its producer promised to publish once, has landed, and was forgotten"
        made_ms = nonce_ms(request.nonce)
        if made_ms is None or made_ms > self.horizon_ms:
            return None
        return (
            f"its nonce was made at {made_ms} ms, and of one-shot producers up to"
            f" {self.horizon_ms} ms the ledger has forgotten which have landed"
        )

    def with_forgotten(self, producers: Mapping[str, int], now_ms: int) -> OneShots:
        """Add the tombstones of producers, by the latest times of their nonces; drop the oldest
        ones if there are too many or they have been kept for long.
        """
        groups = list(self.groups)
        for producer, made_ms in sorted(producers.items()):
            last = groups.pop() if groups and _takes_more(groups[-1], now_ms) else None
            last = last or TombstoneGroup(now_ms, made_ms, "")
            groups.append(
                TombstoneGroup(
                    last.begun_ms, max(last.nonce_ms, made_ms), last.marks + mark_of(producer)
                )
            )
        horizon_ms, count = self.horizon_ms, sum(group.count for group in groups)
        while groups and (count > TOMBSTONES_MAX or _is_old(groups[0], now_ms)):
            oldest = groups.pop(0)
            horizon_ms, count = max(horizon_ms, oldest.nonce_ms), count - oldest.count
        return replace(self, horizon_ms=horizon_ms, groups=tuple(groups))

    @cached_property
    def _marks(self) -> frozenset[str]:
        step = _MARK_CHARACTERS
        return frozenset(
            group.marks[at : at + step]
            for group in self.groups
            for at in range(0, len(group.marks), step)
        )


def _takes_more(group: TombstoneGroup, now_ms: int) -> bool:
    return group.count < _GROUP_MAX and 0 <= now_ms - group.begun_ms < _GROUP_MS


def _is_old(group: TombstoneGroup, now_ms: int) -> bool:
    return now_ms - group.begun_ms >= KEPT_MS + _GROUP_MS


def mark_of(producer: str) -> str:
    """Return the tombstone of a producer's id. Two are alike by chance once in 2**48."""
    return urlsafe_b64encode(blake2b(producer.encode(), digest_size=6).digest()).decode()


def may_be_forgotten(entry: ProducerEntry, now_ms: int) -> bool:
    """Return whether a producer promised to publish once, and its nonces are not of the future: the
    horizon would rise to it, and stop those of the present.
    """
    return entry.one_shot_ms is not None and entry.one_shot_ms <= now_ms


# --- The table property --------------------------------------------------------------------------


def one_shots_key(branch: str) -> str:
    """Return the table property of a branch."""
    return PREFIX if branch == MAIN else f"{PREFIX}@{quote(branch, safe='')}"


def read_one_shots(metadata: TableMetadata) -> dict[str, OneShots]:
    """Return the one-shots by branch. A property that was copied from another table is ignored."""
    found: dict[str, OneShots] = {}
    for key, text in metadata.properties.items():
        if key != PREFIX and not key.startswith(f"{PREFIX}@"):
            continue
        branch = unquote(key[len(PREFIX) + 1 :]) or MAIN
        try:
            parsed = parse_one_shots(text)
        except InvalidMetadataError as error:
            why = f"the table property `{key}` cannot be read: {error}"
            found[branch] = OneShots(metadata.require_uuid(), problem=why)
        else:
            if parsed.table_uuid == metadata.table_uuid:
                found[branch] = parsed
    return found


def print_one_shots(one_shots: OneShots) -> str:
    """Print the property's text."""
    fields: dict[str, object] = {"v": VERSION, "table": str(one_shots.table_uuid)}
    if one_shots.horizon_ms >= 0:
        fields["horizon-ms"] = one_shots.horizon_ms
    fields["groups"] = [[one.begun_ms, one.nonce_ms, one.marks] for one in one_shots.groups]
    return orjson.dumps(fields).decode()


def parse_one_shots(text: str) -> OneShots:
    """Parse the property's text: the inverse of `print_one_shots`.
    Errors: `InvalidMetadataError`."""
    try:
        fields = orjson.loads(text)
        if fields["v"] != VERSION:
            raise InvalidMetadataError(f"version {fields['v']}, this version reads {VERSION}")
        groups = tuple(
            TombstoneGroup(int(begun_ms), int(latest_ms), str(marks))
            for begun_ms, latest_ms, marks in fields["groups"]
        )
        if any(len(group.marks) % _MARK_CHARACTERS for group in groups):
            raise InvalidMetadataError(f"marks that are not of {_MARK_CHARACTERS} characters each")
        return OneShots(UUID(fields["table"]), int(fields.get("horizon-ms", -1)), groups)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidMetadataError(f"not tombstones: {type(error).__name__}") from error
