"""Names in Avro files: characters that Avro does not allow are replaced, as Iceberg Java replaces
them.

Two names may become one, and no reader takes a record that has a field twice. Source:
docs/reference/iceberg-notes.md 6.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from committer.errors import InvalidMetadataError


def check_safe_names(names: Iterable[str], what: str) -> None:
    """Refuse names of one record that are the same name in Avro. `what`: the things that have the
    names. Errors: `InvalidMetadataError` with both names.
    """
    found: dict[str, str] = {}
    for name in names:
        safe = safe_name(name)
        other = found.setdefault(safe, name)
        if other != name:
            raise InvalidMetadataError(
                f"{what} `{other}` and `{name}`: both are named `{safe}` in files, where Avro's"
                " rules for names hold, and no reader tells them apart; rename one of them"
            )


def safe_name(name: str) -> str:
    """Replace what Avro does not allow in a name; the original is kept beside it."""
    return "".join(_safe_characters(name))


def _safe_characters(name: str) -> Iterator[str]:
    for index, unit in enumerate(_utf16_units(name)):
        if unit == "_" or unit.isalpha() or (unit.isdecimal() and index):
            yield unit
        elif unit.isdecimal():
            yield f"_{unit}"
        else:
            yield f"_x{ord(unit):X}"


def _utf16_units(name: str) -> Iterable[str]:
    """Split characters beyond the basic plane in two, as the reference names them."""
    units = name.encode("utf-16-be", "surrogatepass")
    return (chr(int.from_bytes(units[i : i + 2], "big")) for i in range(0, len(units), 2))
