"""How commands answer: JSON lines for machines, tables for people. Nothing but data on stdout."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import orjson
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from committer.cli.view import Facts, Rows, View

_UNLIMITED_COLUMNS = 100_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def print_json(value: Mapping[str, object]) -> None:
    """One object on one line; 64-bit integers are numbers."""
    print_lines([json_line(value)])


def print_json_lines(values: Iterable[Mapping[str, object]]) -> None:
    for value in values:
        print_json(value)


def json_line(value: object) -> bytes:
    """JSON without a line feed, also of what JSON has no form for."""
    return orjson.dumps(value, default=_plain)


def print_lines(lines: Iterable[bytes]) -> None:
    """Lines that are JSON already."""
    for line in lines:
        sys.stdout.write(line.decode() + "\n")


def _plain(value: object) -> object:
    """What JSON has no form for: bytes as hexadecimal, everything else as text."""
    return value.hex().upper() if isinstance(value, bytes | memoryview) else str(value)


def print_table(
    headers: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None
) -> None:
    """A table that loses nothing: long cells are folded on a screen, and whole in a pipe."""
    box = SIMPLE_HEAD if sys.stdout.isatty() else None
    table = Table(box=box, title=title, title_justify="left", pad_edge=False, padding=(0, 2, 0, 0))
    found = [tuple(_cell(value) for value in row) for row in rows]
    for position, header in enumerate(headers):
        numeric = all(_is_number(row[position]) for row in found) and bool(found)
        table.add_column(header, overflow="fold", justify="right" if numeric else "left")
    for row in found:
        table.add_row(*map(Text, row))
    _print(table)


def print_facts(facts: Mapping[str, object], *, title: str | None = None) -> None:
    """Names with their values, one to a line."""
    table = Table(box=None, show_header=False, title=title, title_justify="left", pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(Text(name), Text(_cell(value)))
    _print(table)


def _print(table: Table) -> None:
    if sys.stdout.isatty():
        Console(highlight=False).print(table)
        return
    # Where nobody looks at a screen, a row is a line, however long, without padding at its end.
    console = Console(highlight=False, width=_UNLIMITED_COLUMNS, color_system=None)
    with console.capture() as printed:
        console.print(table)
    for line in printed.get().splitlines():
        sys.stdout.write(line.rstrip() + "\n")


def _cell(value: object) -> str:
    """Control characters (a line feed in a name, say) never reach the terminal."""
    if value is None:
        return ""
    text = ("false", "true")[value] if isinstance(value, bool) else str(value)
    return "".join(
        one if one.isprintable() or one == "\n" else f"\\x{ord(one):02x}" for one in text
    )


def _is_number(text: str) -> bool:
    return text.removeprefix("-").replace(",", "").isdecimal() or not text


def time_text(time_ms: int | None) -> str:
    """A time in UTC; the plain number where no calendar reaches."""
    if time_ms is None:
        return ""
    try:
        return (_EPOCH + timedelta(milliseconds=time_ms)).isoformat(
            sep=" ", timespec="milliseconds"
        )
    except OverflowError:
        return str(time_ms)


def age_text(age_ms: int | None) -> str:
    """An age in the unit that fits."""
    if age_ms is None:
        return ""
    seconds = max(0, age_ms) / 1000
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.1f} s"


def counted(number: int, noun: str) -> str:
    """`1 table`, `2 tables`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def say(text: str) -> None:
    """A remark for the person at the terminal."""
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
