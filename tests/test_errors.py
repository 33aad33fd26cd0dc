"""Foreign bytes quoted in an error cannot harm the line or the terminal that shows it."""

from __future__ import annotations

import pytest

from committer.errors import InvalidFilterError, InvalidMetadataError, UnsupportedError


@pytest.mark.parametrize("kind", [InvalidMetadataError, InvalidFilterError, UnsupportedError])
def test_what_nobody_can_print_is_escaped_and_what_is_long_is_cut(
    kind: type[InvalidMetadataError],
) -> None:
    error = kind("type: found `\x1b[31mé☃\n\ud800\x00`")
    assert str(error) == r"type: found `\x1b[31mé☃\n\ud800\x00`"
    assert str(error).encode()
    assert str(kind("x" * 5000)) == "x" * 1000 + "…"
    assert str(kind("plain")) == "plain"
