"""Fields of doorbells and receipts."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from committer.ports.queue import Doorbell
from committer.queue.entry_fields import (
    INLINE_BYTES_MAX,
    decode_doorbell,
    decode_receipt,
    encode_doorbell,
    encode_receipt,
)
from committer.request.receipt_model import Receipt, ReceiptState

DOORBELL = Doorbell(UUID(int=5), "k/ey", "blake2b-256:ab", b"{}\n\xff", "driver")
RECEIPT = Receipt("p", 2**63 - 1, "a", ReceiptState.COMMITTED, 1, 2, None, None, True)


@pytest.mark.parametrize(
    "doorbell",
    [DOORBELL, replace(DOORBELL, content=None), replace(DOORBELL, content=b"", reply_to=None)],
)
def test_a_doorbell_is_read_as_it_was_written(doorbell: Doorbell) -> None:
    assert decode_doorbell(encode_doorbell(doorbell)) == doorbell


def test_content_above_the_limit_stays_behind() -> None:
    large = replace(DOORBELL, content=b"x" * (INLINE_BYTES_MAX + 1))
    assert b"content" not in encode_doorbell(large)


def test_fields_of_a_later_version_are_ignored() -> None:
    assert decode_doorbell({**encode_doorbell(DOORBELL), b"new": b"1"}) == DOORBELL
    line = encode_receipt(RECEIPT)[b"receipt"].replace(b"{", b'{"new":[1],', 1)
    assert decode_receipt({b"receipt": line, b"other": b""}) == RECEIPT


def test_a_receipt_has_the_documented_keys_without_nulls() -> None:
    assert encode_receipt(RECEIPT)[b"receipt"] == (
        b'{"producer":"p","epoch":9223372036854775807,"attempt":"a","state":"committed",'
        b'"snapshot-id":1,"sequence-number":2,"duplicate":true}'
    )


@pytest.mark.parametrize("reply_to", ["", "x" * 257])
def test_a_reply_address_without_end_is_refused(reply_to: str) -> None:
    with pytest.raises(ValueError, match="reply-to"):
        encode_doorbell(replace(DOORBELL, reply_to=reply_to))
    with pytest.raises(ValueError, match="reply-to"):
        decode_doorbell({**encode_doorbell(DOORBELL), b"reply-to": reply_to.encode()})


@pytest.mark.parametrize("field", [b"table-uuid", b"inbox-key", b"digest"])
def test_a_doorbell_without_a_needed_field_is_refused(field: bytes) -> None:
    fields = encode_doorbell(DOORBELL)
    with pytest.raises(ValueError, match="doorbell"):
        decode_doorbell({key: value for key, value in fields.items() if key != field})
    with pytest.raises(ValueError, match=r"."):
        decode_doorbell({**fields, field: b"\xff"})


@pytest.mark.parametrize(
    "line", [b"", b"[]", b"1", b"{}", b'{"state":"lost"}', b'{"state":"durable"}', b"\xff"]
)
def test_what_is_no_receipt_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode_receipt({b"receipt": line})
    with pytest.raises(ValueError, match="receipt"):
        decode_receipt({})
