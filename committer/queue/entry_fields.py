"""Doorbells and receipts as the fields of stream entries. No I/O.

A doorbell's fields (names are public: any client in any language may ring):

    table-uuid   text form of the uuid
    inbox-key    where the request lies in the inbox
    digest       of the request's line (to its newline included), as in the request format
    content      the request itself; only up to `INLINE_BYTES_MAX`, else absent
    reply-to     the address of receipts; absent if no producer waits
    asks-for     `turn`, from a committer to another one: commit nothing to the table for a moment

A receipt has the one field `receipt`: a JSON object whose keys are those of
`committer.request.receipt_model.Receipt` with dashes, without nulls. Readers ignore fields and keys
that they do not know, so later versions may add some; they never change or drop one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from uuid import UUID

import orjson

from committer.ports.queue import Doorbell
from committer.request.receipt_model import Receipt, ReceiptState

INLINE_BYTES_MAX = 64 * 1024
REPLY_TO_BYTES_MAX = 256
RECEIPTS_MAX = 1_024
RECEIPTS_S_MAX = 3_600

_RECEIPT_KEYS = {field.name.replace("_", "-"): field.name for field in fields(Receipt)}


def inline(doorbell: Doorbell) -> bytes | None:
    """Return the content that travels with the doorbell: None if it is too large to be copied."""
    content = doorbell.content
    return content if content is not None and len(content) <= INLINE_BYTES_MAX else None


def encode_doorbell(doorbell: Doorbell) -> dict[bytes, bytes]:
    """Encode a doorbell. Errors: `ValueError` for a `reply_to` that is empty or too long."""
    encoded = {
        b"table-uuid": str(doorbell.table_uuid).encode(),
        b"inbox-key": doorbell.inbox_key.encode(),
        b"digest": doorbell.digest.encode(),
    }
    if (content := inline(doorbell)) is not None:
        encoded[b"content"] = content
    if doorbell.reply_to is not None:
        encoded[b"reply-to"] = _checked(doorbell.reply_to).encode()
    if doorbell.asks_for_turn:
        encoded[b"asks-for"] = b"turn"
    return encoded


def decode_doorbell(entry: Mapping[bytes, bytes]) -> Doorbell:
    """Decode a doorbell. Errors: `ValueError` for an entry that `encode_doorbell` never makes."""
    try:
        reply_to = entry.get(b"reply-to")
        return Doorbell(
            table_uuid=UUID(entry[b"table-uuid"].decode()),
            inbox_key=entry[b"inbox-key"].decode(),
            digest=entry[b"digest"].decode(),
            content=entry.get(b"content"),
            reply_to=None if reply_to is None else _checked(reply_to.decode()),
            asks_for_turn=entry.get(b"asks-for") == b"turn",
        )
    except KeyError as error:
        raise ValueError(f"a doorbell without {error}") from error


def _checked(reply_to: str) -> str:
    if not 0 < len(reply_to.encode()) <= REPLY_TO_BYTES_MAX:
        raise ValueError(f"reply-to: expected 1 to {REPLY_TO_BYTES_MAX} bytes")
    return reply_to


def encode_receipt(receipt: Receipt) -> dict[bytes, bytes]:
    values = {key: getattr(receipt, name) for key, name in _RECEIPT_KEYS.items()}
    return {b"receipt": orjson.dumps({k: v for k, v in values.items() if v is not None})}


def decode_receipt(entry: Mapping[bytes, bytes]) -> Receipt:
    """Decode a receipt. Errors: `ValueError` for an entry that `encode_receipt` never makes."""
    try:
        parsed = orjson.loads(entry[b"receipt"])
        known = {name: parsed[key] for key, name in _RECEIPT_KEYS.items() if key in parsed}
        return Receipt(**{**known, "state": ReceiptState(known["state"])})
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a receipt: {error!r}") from error
