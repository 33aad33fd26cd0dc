"""`frazil key new` makes keys that the file of keys takes as they are."""

from __future__ import annotations

import pytest

from committer.request.signature import parse_keys
from tests.support.cli.commands import Frazil


def test_new_keys_appended_to_one_file_are_read_back(frazil: Frazil) -> None:
    first = frazil("key", "new", "spark-2026-11", "--table", "db.*", "--table", 'a"b.*')
    second = frazil("key", "new", "with a dot.", "--operation", "append", "--producer", "q*")
    assert (first.code, second.code) == (0, 0)
    keys = parse_keys((first.out + second.out).encode(), "here")
    assert list(keys) == ["spark-2026-11", "with a dot."]
    one, other = keys.values()
    assert (one.tables, one.producers, one.operations) == (("db.*", 'a"b.*'), ("*",), ("*",))
    assert (other.tables, other.producers, other.operations) == (("*",), ("q*",), ("append",))
    assert len(one.secret) == 32
    assert one.secret != other.secret


@pytest.mark.parametrize("arguments", [("a", "--operation", "drop"), ("",), ("a", "--table", "")])
def test_a_key_that_the_file_would_not_take_is_not_printed(
    frazil: Frazil, arguments: tuple[str, ...]
) -> None:
    answer = frazil("key", "new", *arguments)
    assert (answer.code, answer.out) == (2, "")


def test_a_key_without_a_name_is_refused_by_its_argument(frazil: Frazil) -> None:
    answer = frazil("key", "new", "")
    assert "'key_id': expected a text that is not empty" in answer.err
