"""Tables and facts as lines of text. A word (an id, a number, a path, a time) is never broken.

On a screen that is too narrow for the words of a table, each row becomes a block with a line for
each value. Without a width (a pipe, a file) a row is a line, however long.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.cells import cell_len

_GAP = "  "
# Not between a date and its time of day.
_BREAK = re.compile(r"(?<!\d{4}-\d\d-\d\d) | (?!\d\d:\d\d:\d\d)")
Row = Sequence[str]


def table_lines(headers: Row, rows: Sequence[Row], width: int | None) -> Iterator[str]:
    """Yield the lines of a table, or of blocks if a table does not fit."""
    columns = list(zip(headers, *rows, strict=True))
    widths = [max(map(_natural, column)) for column in columns]
    if width is not None:
        floors = [max(map(_longest_word, column)) for column in columns]
        room = width - len(_GAP) * (len(columns) - 1)
        if sum(floors) > room:
            yield from _blocks(headers, rows)
            return
        widths = _shrunk(widths, floors, room)
    right = [bool(rows) and all(map(_is_number, column[1:])) for column in columns]
    yield from _row_lines(headers, widths, right)
    if width is not None:
        yield "─" * (sum(widths) + len(_GAP) * (len(widths) - 1))
    for row in rows:
        yield from _row_lines(row, widths, right)


def fact_lines(facts: Mapping[str, str], width: int | None) -> Iterator[str]:
    """Yield names and values, one to a line;
    a value that does not fit beside its name is below it."""
    indent = max(map(cell_len, facts), default=0) + len(_GAP)
    for name, value in facts.items():
        if width is not None and _longest_word(value) > width - indent:
            yield name
            yield from (f"{_GAP}{line}" for line in value.split("\n"))
            continue
        room = None if width is None else width - indent
        first, *more = list(_wrapped(value, room)) or [""]
        yield (_padded(name, indent) + first).rstrip()
        yield from (" " * indent + line for line in more)


def _shrunk(widths: list[int], floors: list[int], room: int) -> list[int]:
    """Take from the columns with the most room to lose, until all fit."""
    shrunk = list(widths)
    while sum(shrunk) > room:
        spare = [width - floor for width, floor in zip(shrunk, floors, strict=True)]
        shrunk[spare.index(max(spare))] -= 1
    return shrunk


def _row_lines(row: Row, widths: Sequence[int], right: Sequence[bool]) -> Iterator[str]:
    cells = [list(_wrapped(cell, width)) for cell, width in zip(row, widths, strict=True)]
    for number in range(max(map(len, cells), default=0)):
        parts = (
            _padded(cell[number] if number < len(cell) else "", width, is_right=is_right)
            for cell, width, is_right in zip(cells, widths, right, strict=True)
        )
        yield _GAP.join(parts).rstrip()


def _blocks(headers: Row, rows: Sequence[Row]) -> Iterator[str]:
    indent = max(map(cell_len, headers)) + len(_GAP)
    for number, row in enumerate(rows):
        if number:
            yield ""
        for header, cell in zip(headers, row, strict=True):
            for line in cell.split("\n") if cell else ():
                yield f"{_padded(header, indent)}{line}"


def _wrapped(text: str, width: int | None) -> Iterator[str]:
    """Yield the text's lines, broken between words."""
    for line in text.split("\n"):
        if width is None or cell_len(line) <= width:
            yield line
        else:
            yield from _filled(_BREAK.split(line), width)


def _filled(words: Iterable[str], width: int) -> Iterator[str]:
    line = ""
    for word in words:
        longer = f"{line} {word}" if line else word
        if line and cell_len(longer) > width:
            yield line
            line = word
        else:
            line = longer
    yield line


def _padded(text: str, width: int, *, is_right: bool = False) -> str:
    fill = " " * (width - cell_len(text))
    return fill + text if is_right else text + fill


def _natural(cell: str) -> int:
    return max(map(cell_len, cell.split("\n")))


def _longest_word(cell: str) -> int:
    words = (word for line in cell.split("\n") for word in _BREAK.split(line))
    return max(map(cell_len, words), default=0)


def _is_number(text: str) -> bool:
    return text.removeprefix("-").replace(",", "").isdecimal() or not text
