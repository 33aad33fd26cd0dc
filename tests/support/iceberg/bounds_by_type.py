"""Bounds of each type: such as readers can decode, and such as they cannot."""

from __future__ import annotations

# For each type what its bounds may be, and what they may not.
FORMS: dict[str, tuple[tuple[bytes, ...], tuple[bytes, ...]]] = {
    "boolean": ((b"\0", b"\1", b"\2"), (b"", b"\0\0")),
    "int": ((bytes(4),), (b"", bytes(3), bytes(8))),
    "long": ((bytes(8), bytes(4)), (b"", bytes(3), bytes(7), bytes(9))),
    "float": ((bytes(4), b"\0\0\xc0\x7f"), (b"", bytes(8))),
    "double": ((bytes(8), bytes(4)), (b"", bytes(5))),
    "date": ((bytes(4),), (b"", bytes(8))),
    "time": ((bytes(8),), (b"", bytes(4))),
    "timestamp": ((bytes(8),), (b"", bytes(4))),
    "timestamptz": ((bytes(8),), (b"", bytes(4), bytes(9))),
    "timestamp_ns": ((bytes(8),), (bytes(4),)),
    "timestamptz_ns": ((bytes(8),), (bytes(4),)),
    "string": (
        (b"", b"a", "é𝄞".encode(), b"a\0b", b"x" * 200, ("é" * 70).encode()),
        (
            b"\xff",
            b"abc\xc3",
            b"\xed\xa0\x80",
            b"\xc0\x80",
            b"\xf4\x90\x80\x80",
            b"x" * 99 + b"\x80",
        ),
    ),
    "uuid": ((bytes(16),), (b"", bytes(15), bytes(17), b"0d6f8e1c-5b0f-4c0e-9a53-6f1d2b3c4d5e")),
    "fixed[4]": ((bytes(4), b"ab", b""), (bytes(5),)),
    "binary": ((b"", b"\xff", bytes(100)), ()),
    "decimal(9, 2)": (
        (b"\0", b"\x3b\x9a\xc9\xff", b"\xc4\x65\x36\x01", b"\xff"),
        (b"", b"\x3b\x9a\xca\x00", b"\xc4\x65\x36\x00", bytes(5)),
    ),
    "decimal(38, 0)": (
        ((10**38 - 1).to_bytes(16, "big"), (1 - 10**38).to_bytes(16, "big", signed=True)),
        ((10**38).to_bytes(16, "big"), bytes(17)),
    ),
    "geometry": ((bytes(16), bytes(24), bytes(32)), (b"", bytes(8), bytes(20), bytes(40))),
    "geography": ((bytes(16), bytes(32)), (bytes(15),)),
    "variant": ((b"", b"\1\0\0"), ()),
    "unknown": ((), (b"", b"\0")),
}
