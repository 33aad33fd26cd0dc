"""The bits of a text prove that others which have them are text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from committer.iceberg.entry.bound_values import text_bits

# Beside the ends of the ranges of UTF-8, too.
EDGES = (
    "\x00\x7f\x80\u07ff\u0800\u0fff\u1000\ucfff\ud000\ud7ff\ue000\uffff"
    "\U00010000\U0003ffff\U00040000\U0010ffff"
)
TEXTS = st.text(st.one_of(st.sampled_from(EDGES), st.characters(exclude_categories=["Cs"])))


def agreeing(text: bytes, bits: bytes, other: bytes) -> bytes:
    return bytes(a & b | c & ~b for a, b, c in zip(text, bits, other, strict=True))


@given(TEXTS, st.data())
def test_bytes_that_agree_with_a_text_in_its_bits_are_text(text: str, data: st.DataObject) -> None:
    encoded = text.encode()
    bits, size = text_bits(encoded), len(encoded)
    for other in (bytes(size), b"\xff" * size, data.draw(st.binary(min_size=size, max_size=size))):
        assert len(agreeing(encoded, bits, other).decode()) == len(text)


def test_the_bits_leave_most_of_a_letter_open() -> None:
    assert text_bits(b"a~") == b"\x80\x80"
    assert text_bits("é".encode()) == b"\xfe\xc0"
    assert text_bits("漢".encode()) == b"\xfc\xc0\xc0"
    assert text_bits("\U00010000".encode()) == b"\xff\xf0\xc0\xc0"
