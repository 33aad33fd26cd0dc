"""Prints answers of commands: JSON lines for machines, tables for people. Stdout gets data only."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import orjson
import typer

from committer.cli.output.view import Facts, Rows, View

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def print_json(value: Mapping[str, object]) -> None:
    """Print one object on one line; 64-bit integers are numbers."""
    print_lines([json_line(value)])


def print_json_lines(values: Iterable[Mapping[str, object]]) -> None:
    for value in values:
        print_json(value)


def json_line(value: object) -> bytes:
    """Print JSON without a line feed, also of values that JSON has no form for."""
    return orjson.dumps(value, default=_plain)


def print_lines(lines: Iterable[bytes]) -> None:
    """Print lines that are JSON already."""
    for line in lines:
        sys.stdout.write(line.decode() + "\n")


def _plain(value: object) -> object:
    """Return a value that JSON has no form for as text: bytes as hexadecimal."""
    return value.hex().upper() if isinstance(value, bytes | memoryview) else str(value)


def print_table(
    headers: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None
) -> None:
    """Print a table that loses nothing: whole lines in a pipe, and whole words on a screen."""
    from committer.cli.output.layout import table_lines  # `frazil --help` does without rich

    found = [tuple(_cell(value) for value in row) for row in rows]
    _print(title, table_lines(headers, found, _width()))


def print_facts(facts: Mapping[str, object], *, title: str | None = None) -> None:
    """Print names with their values, one to a line."""
    from committer.cli.output.layout import fact_lines

    found = {name: _cell(value) for name, value in facts.items()}
    _print(title, fact_lines(found, _width()))


def _print(title: str | None, lines: Iterable[str]) -> None:
    if title is not None:
        sys.stdout.write(title + "\n")
    for line in lines:
        sys.stdout.write(line + "\n")


def _width() -> int | None:
    """Return the columns of the screen; None if the output is no terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _cell(value: object) -> str:
    """Print a cell; control characters (a line feed in a name, say) never reach the terminal."""
    if value is None:
        return ""
    text = ("false", "true")[value] if isinstance(value, bool) else str(value)
    return "".join(
        one if one.isprintable() or one == "\n" else f"\\x{ord(one):02x}" for one in text
    )


def time_text(time_ms: int | None) -> str:
    """Print `2026-11-22 15:04:05Z`, in UTC; the plain number where no calendar reaches."""
    if time_ms is None:
        return ""
    try:
        return f"{_EPOCH + timedelta(milliseconds=time_ms):%Y-%m-%d %H:%M:%SZ}"
    except OverflowError:
        return str(time_ms)


def age_text(age_ms: int | None) -> str:
    """Print an age in the unit that fits."""
    if age_ms is None:
        return ""
    seconds = max(0, age_ms) / 1000
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.1f} s"


def counted(number: int, noun: str) -> str:
    """Print `1 table`, `2 tables`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def say(text: str) -> None:
    """Print a remark for the person at the terminal."""
    sys.stderr.write(text + "\n")


def show(views: Iterable[View]) -> None:
    """Print views one under the other."""
    for number, view in enumerate(views):
        if number:
            sys.stdout.write("\n")
        match view:
            case Facts(title, facts):
                print_facts(facts, title=title)
            case Rows(title, headers, rows):
                print_table(headers, rows, title=title)


def confirm(question: str, *, needed: bool, refused: str = "nothing was changed") -> None:
    """Ask on the terminal, if that is needed; no answer is no, and ends with exit code 1."""
    if not needed:
        return
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        say(f"frazil: {refused}")
        raise typer.Exit(1)
