"""Large JSON is read as small JSON is, and lets other threads in at each of its objects."""

from __future__ import annotations

import orjson
import pytest

from committer.iceberg.metadata import json_text
from committer.iceberg.metadata.json_text import load_json
from tests.support.service.loop_work import loop_work

PADDING = b" " * 256 * 1024
VALUES = [
    b'{"a": [1, -2, 3.5, 1e3, true, false, null, "x"]}',
    b'{"a": 1, "a": 2}',
    '{"ä": "€ \\u00e4 \\ud83d\\ude00 \\n"}'.encode(),
    b"[9223372036854775807, -9223372036854775808]",
    b"{}",
    b'"text"',
]
WRONG = [
    b"",
    b"{",
    b"{'a': 1}",
    b'{"a": NaN}',
    b'{"a": Infinity}',
    b'{"a": -Infinity}',
    b'{"a": 1} x',
    b'{"a": "\x01"}',
    b'{"a": "\xff"}',
    b'{"a": "\xed\xa0\x80"}',
    b'{"a": "\\ud800"}',
    b'{"a": 1e999}',
    b'\xef\xbb\xbf{"a": 1}',
    b"[" * 100_000 + b"]" * 100_000,
]


@pytest.mark.parametrize("padding", [b"", PADDING])
@pytest.mark.parametrize("content", VALUES)
def test_a_value_is_what_orjson_reads(content: bytes, padding: bytes) -> None:
    assert load_json(content + padding) == orjson.loads(content)


@pytest.mark.parametrize("padding", [b"", PADDING])
@pytest.mark.parametrize("content", WRONG)
def test_what_is_no_json_is_refused(content: bytes, padding: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        load_json(content + padding)


def test_other_threads_are_let_in_at_each_object_of_a_large_text() -> None:
    objects = 5_000
    content = orjson.dumps([{"number": number, "text": "x" * 50} for number in range(objects)])
    with loop_work(json_text._yielding) as work:
        load_json(content)
    assert work.most == objects
