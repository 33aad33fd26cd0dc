"""Signatures that are missing, forged, stolen, or of a key that is not for that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from uuid import UUID

from committer.ports.pointer_swap import LoadedTable
from committer.reason import Reason
from committer.request.commit_request import Producer
from committer.request.request_format import EncodedRequest
from committer.request.signature import SigningKey
from tests.corpus.hostile import Hostile, Sent
from tests.corpus.tables import SIGNED
from tests.support.builders.bad_requests import good
from tests.support.builders.signing import OLD, bound, signed, with_changes

# The keys of the tests' committer: one key for everything, others for something else.
_OTHERS = (
    bound(SigningKey("other-table", b"t" * 32), tables=["db.other", "sales.*"]),
    bound(SigningKey("other-producer", b"p" * 32), producers=["nightly"]),
    bound(SigningKey("other-operation", b"d" * 32), operations=["rewrite-files"]),
)
KNOWN = (OLD, *_OTHERS)
_UNKNOWN = SigningKey("corpus-unknown", b"u" * 32)
_STRANGE_SECRET = b"s" * 32

_Forge = Callable[[LoadedTable, str], EncodedRequest]


def signatures(key: SigningKey, others: Sequence[SigningKey] = ()) -> tuple[Hostile, ...]:
    """Return cases for a committer with a key that may sign all, and `others` that may not."""
    found = (*_of_keys(key, others), *_forged(key, others))
    return tuple(replace(one, table=SIGNED) for one in found)


def _of_keys(key: SigningKey, others: Sequence[SigningKey]) -> Iterator[Hostile]:
    def case(name: str, reason: Reason, forge: _Forge) -> Hostile:
        return Hostile(name, reason, lambda table, who: Sent.of(forge(table, who)))

    def with_key(name: str, reason: Reason, known: SigningKey) -> Hostile:
        return case(name, reason, lambda table, who: signed(good(table, who), known))

    yield case("no signature", Reason.SIGNATURE_MISSING, good)
    yield with_key("an unknown key", Reason.SIGNATURE_KEY_UNKNOWN, _UNKNOWN)
    for name, secret in (("a key of an empty secret", b""), ("another secret", _STRANGE_SECRET)):
        yield with_key(name, Reason.SIGNATURE_INVALID, SigningKey(key.key_id, secret))
    for other in others:
        name = f"the key `{other.key_id}`, which is not for that"
        yield with_key(name, Reason.SIGNATURE_KEY_NOT_ALLOWED, other)
    yield case(
        "too late",
        Reason.SIGNATURE_EXPIRED,
        lambda table, who: signed(good(table, who), key, not_after_ms=1),
    )
    yield case(
        "a key id that would fit every pattern",
        Reason.SIGNATURE_KEY_UNKNOWN,
        lambda table, who: with_changes(signed(good(table, who), key), key_id="*"),
    )


def _forged(key: SigningKey, others: Sequence[SigningKey]) -> Iterator[Hostile]:
    def case(name: str, forge: _Forge) -> Hostile:
        return Hostile(
            f"signature: {name}",
            Reason.SIGNATURE_INVALID,
            lambda table, who: Sent.of(forge(table, who)),
        )

    def spelled(name: str, change: Callable[[str], str]) -> Hostile:
        def forge(table: LoadedTable, producer: str) -> EncodedRequest:
            right = signed(good(table, producer), key)
            return with_changes(right, signature=change(right.request.signature or ""))

        return case(name, forge)

    def changed(name: str, **changes: object) -> Hostile:
        return case(name, lambda table, who: with_changes(signed(good(table, who), key), **changes))

    def stolen(table: LoadedTable, producer: str) -> EncodedRequest:
        """Claim another producer's signed request."""
        right = signed(good(table, "victim"), key)
        return with_changes(right, producer=Producer(id=producer, sequential=True))

    def transplanted(table: LoadedTable, producer: str) -> EncodedRequest:
        """Sign a request with the signature of another."""
        signature = signed(good(table, producer), key).request.signature
        other = good(table, producer, epoch=1)
        return with_changes(other, signature=signature, key_id=key.key_id)

    yield from (spelled(*one) for one in _SPELLINGS)
    yield spelled("that stands elsewhere as well", lambda text: key.key_id)
    yield case("stolen from another producer", stolen)
    yield case("stolen from another epoch", transplanted)
    yield changed("of another epoch", epoch=5)
    yield changed("of another attempt", nonce=UUID(int=99))
    yield changed("of another time", published_at_ms=1)
    yield changed("with a longer life", not_after_ms=2**62)
    yield changed("without its branch", adopt_existing=True)
    for other in others[:1]:
        yield changed("of another key", key_id=other.key_id)


_SPELLINGS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("of nothing", lambda text: ""),
    ("of a name only", lambda text: "hmac-sha256:"),
    ("without a name", lambda text: text.partition(":")[2]),
    ("of no algorithm", lambda text: "none:"),
    ("of a weaker algorithm", lambda text: "hmac-md5:" + text[12:44]),
    ("cut", lambda text: text[:-2]),
    ("longer", lambda text: text + "00"),
    ("in capitals", str.upper),
    ("of zeros", lambda text: "hmac-sha256:" + "0" * 64),
    ("that is no ASCII", lambda text: "\N{SNOWMAN}" * 64),
    ("with quotes", lambda text: '","key-id":"'),
    ("with white space", lambda text: f" {text}"),
)
SIGNATURES = signatures(OLD, _OTHERS)
