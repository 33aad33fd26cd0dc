"""Signatures that are missing, forged, stolen, or of a key that is not for that."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from committer.ports import LoadedTable
from committer.reason import Reason
from committer.request import Producer, SealedRequest
from committer.signature import SigningKey
from tests.bad_requests import good
from tests.corpus.hostile import Hostile, Sent
from tests.signing import NEW, OLD, STRANGER, bound, signed, with_changes

# What the committer of these tests knows: one key for everything, others for something else.
OTHER_TABLE = bound(SigningKey("other-table", b"t" * 32), tables=["db.other", "sales.*"])
OTHER_PRODUCER = bound(SigningKey("other-producer", b"p" * 32), producers=["nightly"])
OTHER_OPERATION = bound(SigningKey("other-operation", b"d" * 32), operations=["replace"])
KNOWN = (OLD, OTHER_TABLE, OTHER_PRODUCER, OTHER_OPERATION)


def _with_key(name: str, reason: Reason, key: SigningKey) -> Hostile:
    return Hostile(name, reason, lambda table, who: Sent.of(signed(good(table, who), key)))


def _forged(name: str, forge: Callable[[LoadedTable, str], SealedRequest]) -> Hostile:
    return Hostile(
        f"signature: {name}",
        Reason.SIGNATURE_INVALID,
        lambda table, who: Sent.of(forge(table, who)),
    )


def _spelled(change: Callable[[str], str]) -> Callable[[LoadedTable, str], SealedRequest]:
    def forge(table: LoadedTable, producer: str) -> SealedRequest:
        right = signed(good(table, producer))
        return with_changes(right, signature=change(right.request.signature or ""))

    return forge


def _changed(**changes: object) -> Callable[[LoadedTable, str], SealedRequest]:
    return lambda table, producer: with_changes(signed(good(table, producer)), **changes)


def _stolen(table: LoadedTable, producer: str) -> SealedRequest:
    """Another producer's signed request under one's own name."""
    right = signed(good(table, "victim"))
    return with_changes(right, producer=Producer(id=producer, sequential=True))


def _transplanted(table: LoadedTable, producer: str) -> SealedRequest:
    """The signature of a request on another."""
    right = signed(good(table, producer))
    return with_changes(
        good(table, producer, epoch=1), signature=right.request.signature, key_id=OLD.key_id
    )


SIGNATURES: tuple[Hostile, ...] = (
    Hostile("no signature", Reason.SIGNATURE_MISSING, lambda table, who: Sent.of(good(table, who))),
    _with_key("an unknown key", Reason.SIGNATURE_KEY_UNKNOWN, NEW),
    _with_key("a key of an empty secret", Reason.SIGNATURE_INVALID, SigningKey(OLD.key_id, b"")),
    _with_key("another secret", Reason.SIGNATURE_INVALID, STRANGER),
    _with_key("a key of another table", Reason.SIGNATURE_KEY_NOT_ALLOWED, OTHER_TABLE),
    _with_key("a key of another producer", Reason.SIGNATURE_KEY_NOT_ALLOWED, OTHER_PRODUCER),
    _with_key("a key of another operation", Reason.SIGNATURE_KEY_NOT_ALLOWED, OTHER_OPERATION),
    Hostile(
        "too late",
        Reason.SIGNATURE_EXPIRED,
        lambda table, who: Sent.of(signed(good(table, who), not_after_ms=1)),
    ),
    Hostile(
        "a key id that would fit every pattern",
        Reason.SIGNATURE_KEY_UNKNOWN,
        lambda table, who: Sent.of(with_changes(signed(good(table, who)), key_id="*")),
    ),
    _forged("of nothing", _spelled(lambda text: "")),
    _forged("of a name only", _spelled(lambda text: "hmac-sha256:")),
    _forged("without a name", _spelled(lambda text: text.partition(":")[2])),
    _forged("of no algorithm", _spelled(lambda text: "none:")),
    _forged("of a weaker algorithm", _spelled(lambda text: "hmac-md5:" + text[12:44])),
    _forged("cut", _spelled(lambda text: text[:-2])),
    _forged("longer", _spelled(lambda text: text + "00")),
    _forged("in capitals", _spelled(str.upper)),
    _forged("of zeros", _spelled(lambda text: "hmac-sha256:" + "0" * 64)),
    _forged("that is no ASCII", _spelled(lambda text: "\N{SNOWMAN}" * 64)),
    _forged("with quotes", _spelled(lambda text: '","key-id":"')),
    _forged("that stands elsewhere as well", _spelled(lambda text: OLD.key_id)),
    _forged("with white space", _spelled(lambda text: f" {text}")),
    _forged("stolen from another producer", _stolen),
    _forged("stolen from another epoch", _transplanted),
    _forged("of another epoch", _changed(epoch=5)),
    _forged("of another attempt", _changed(nonce=UUID(int=99))),
    _forged("of another time", _changed(published_at_ms=1)),
    _forged("with a longer life", _changed(not_after_ms=2**62)),
    _forged("without its branch", _changed(adopt_existing=True)),
    _forged("of another key", _changed(key_id=OTHER_TABLE.key_id)),
)
