from __future__ import annotations

import json
from uuid import UUID

import pytest

from committer.cli.output import file_lines as module
from committer.cli.output.file_lines import file_lines
from committer.iceberg.inspection.values import Row


def file(content: int, path: str, offset: int | None = None) -> Row:
    return {"content": content, "file_path": path, "content_offset": offset, "text": "é" * 100}


@pytest.mark.parametrize("memory_bytes", [50, 1 << 20])
def test_lines_come_in_order_from_memory_and_from_disk(
    memory_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MEMORY_BYTES_MAX", memory_bytes)
    ordered = [
        file(0, "a"),
        file(0, "z"),
        file(2, "b"),
        file(1, "c", 136),
        file(1, "c", 4),
        file(1, "d"),
    ]
    assert [json.loads(line) for line in file_lines(reversed(ordered))] == ordered


def test_values_that_json_has_no_form_for_are_text() -> None:
    partition = {"bytes": b"\xab", "uuid": UUID(int=1)}
    (line,) = file_lines([{"content": 0, "file_path": "a", "partition": partition}])
    assert json.loads(line)["partition"] == {"bytes": "AB", "uuid": str(UUID(int=1))}
