from __future__ import annotations

import pytest

from committer.cli.producers.quarantine_selection import choose_key
from committer.errors import NotFoundError

FIRST = "11111111-0000-4000-8000-000000000000/q/00000000000000000001/aaaa1111-x1"
SECOND = "11111111-0000-4000-8000-000000000000/q/00000000000000000002/aaab2222-x2"
OTHER = "22222222-0000-4000-8000-000000000000/q/00000000000000000001/bbbb3333-x3"
KEYS = (FIRST, SECOND, OTHER)


@pytest.mark.parametrize(
    ("text", "key"),
    [(FIRST, FIRST), ("222", OTHER), ("aaab", SECOND), ("-x1", FIRST), ("bbbb3333-x3", OTHER)],
)
def test_a_key_may_be_abbreviated_to_what_only_it_has(text: str, key: str) -> None:
    assert choose_key(text, KEYS) == key


def test_an_abbreviation_that_fits_several_is_refused_with_what_it_fits() -> None:
    with pytest.raises(NotFoundError, match=r"`aaa` fits 2 requests in quarantine: .*-x1, .*-x2$"):
        choose_key("aaa", KEYS)


@pytest.mark.parametrize("text", ["", "zzz", "0001"])
def test_what_fits_nothing_is_refused(text: str) -> None:
    with pytest.raises(NotFoundError, match="nothing in quarantine"):
        choose_key(text, KEYS)


def test_a_whole_key_is_meant_even_if_another_starts_with_it() -> None:
    assert choose_key(FIRST, (*KEYS, FIRST + "0")) == FIRST
