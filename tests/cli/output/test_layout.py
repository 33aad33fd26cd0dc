"""Tables and facts on screens of every width: no id, number or path is ever broken."""

from __future__ import annotations

import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from fcntl import ioctl
from pathlib import Path

import pytest

from committer.cli.output.layout import fact_lines, table_lines
from tests.support.builders.request_builders import build_request
from tests.support.cli.commands import Frazil
from tests.support.cli.serving import REPOSITORY

UUID = "01890a5d-ac96-774b-bcce-b302099a8057"
DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")
TIME = re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ")
HEADERS = ("producer", "epoch", "why it stays")
ROWS = [(UUID, "12", "a request names it"), (UUID[::-1], "123456789", "")]


def words(lines: Sequence[str]) -> set[str]:
    return {word for line in lines for word in line.split()}


@pytest.mark.parametrize("width", [None, *range(20, 101, 5)])
def test_every_word_is_whole_at_every_width(width: int | None) -> None:
    lines = list(table_lines(HEADERS, ROWS, width))
    assert {UUID, UUID[::-1], "12", "123456789", "request", "names"} <= words(lines)
    facts = list(fact_lines({"uuid": UUID, "why": "a request names it"}, width))
    assert {UUID, "request"} <= words(facts)
    if width is not None and width >= 40:
        assert max(map(len, [*lines, *facts])) <= max(width, len("why it stays  ") + len(UUID))


def test_without_a_width_a_row_is_a_line() -> None:
    lines = list(table_lines(HEADERS, ROWS, None))
    assert lines == [
        f"producer{' ' * 28}      epoch  why it stays",
        f"{UUID}         12  a request names it",
        f"{UUID[::-1]}  123456789",
    ]


def test_where_the_words_fit_texts_are_wrapped() -> None:
    lines = list(table_lines(HEADERS, ROWS, 60))
    assert max(map(len, lines)) <= 60
    assert any(line.endswith("a request") for line in lines)


def test_where_the_words_do_not_fit_each_value_has_a_line() -> None:
    lines = list(table_lines(HEADERS, ROWS, 40))
    assert lines == [
        f"producer      {UUID}",
        "epoch         12",
        "why it stays  a request names it",
        "",
        f"producer      {UUID[::-1]}",
        "epoch         123456789",
    ]


@pytest.mark.parametrize("width", range(20, 60))
def test_a_time_is_one_word(width: int) -> None:
    time = "2026-11-22 15:04:05Z"
    lines = list(table_lines(("when", "why"), [(time, f"since {time} at the latest")], width))
    lines += fact_lines({"when": time, "why": f"since {time} at the latest"}, width)
    assert "\n".join(lines).count(time) == 4, lines


def test_wide_characters_count_twice() -> None:
    lines = list(table_lines(("a", "b"), [("飛行機", "1"), ("x", "2")], 80))
    assert lines[0] == "a       b"
    assert lines[2:] == ["飛行機  1", "x       2"]


def test_a_table_without_rows_has_its_headers() -> None:
    assert list(table_lines(("a", "b"), [], None)) == ["a  b"]
    assert list(fact_lines({}, 80)) == []


def on_a_terminal(home: Path, columns: int, *arguments: str) -> list[str]:
    """Return the lines that a command prints on a screen of so many columns."""
    parent, child = pty.openpty()
    ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {name: text for name, text in os.environ.items() if name != "COLUMNS"}
    settings = {"FRAZIL_HOME": str(home), "FRAZIL_QUEUE__URL": "none"}
    process = subprocess.Popen(
        [sys.executable, "-m", "committer", *arguments],
        cwd=REPOSITORY,
        env={**environment, **settings, "FRAZIL_SERVICE__HTTP_PORT": "0"},
        stdout=child,
        stderr=subprocess.PIPE,
    )
    os.close(child)
    content = b""
    while True:
        try:
            part = os.read(parent, 65_536)
        except OSError:  # Linux, where the other end is closed
            break
        if not part:
            break
        content += part
    os.close(parent)
    process.communicate()
    return content.decode().splitlines()


@pytest.mark.thorough
@pytest.mark.parametrize(
    "command",
    [
        ("quarantine", "list"),
        ("quarantine", "show", "{attempt}"),
        ("status",),
        ("table", "show", "db.flights"),
        ("producer", "list", "db.flights"),
    ],
)
def test_ids_are_whole_on_a_terminal_of_80_columns(
    frazil: Frazil, tmp_path: Path, command: tuple[str, ...]
) -> None:
    assert frazil("table", "create", "db.flights", "--schema", "id long, name string").code == 0
    sealed = build_request(frazil.load(), producer=UUID)
    frazil.quarantine(sealed, "table_unknown")
    frazil.put(build_request(frazil.load(), epoch=1, producer=UUID))
    assert frazil("producer", "freeze", "db.flights", UUID).code == 0
    attempt = str(sealed.request.attempt)
    lines = on_a_terminal(tmp_path, 80, *(one.format(attempt=attempt) for one in command))
    table_uuid = str(frazil.load().metadata.table_uuid)
    wanted = {
        "quarantine list": {UUID, "db.flights", "table_unknown"},
        "quarantine show": {UUID, attempt, table_uuid},
        "status": {UUID, "db.flights"},
        "table show": {table_uuid, f"file://{tmp_path}/warehouse/db/flights"},
        "producer list": {UUID},
    }
    assert wanted[" ".join(command[:2])] <= words(lines), "\n".join(lines)
    assert [line for line in lines if DATE.search(line) and not TIME.search(line)] == []


@pytest.mark.thorough
@pytest.mark.parametrize("reason", ["table_unknown", "epoch_landed_unproven"])
def test_the_list_of_what_is_in_quarantine_fits_80_columns(
    frazil: Frazil, tmp_path: Path, reason: str
) -> None:
    assert frazil("table", "create", "db.flights", "--schema", "id long, name string").code == 0
    sealed = build_request(frazil.load(), producer="import-2026")
    frazil.quarantine(sealed, reason, quarantined_at_ms=1_795_359_845_000)
    lines = on_a_terminal(tmp_path, 80, "quarantine", "list")
    assert max(map(len, lines)) <= 80
    assert any("2026-11-22 15:04:05Z" in line for line in lines), lines
    assert (len(lines) == 3) == (reason == "table_unknown")
