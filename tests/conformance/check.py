"""One check of the conformance suite, and how values are compared: exactly, naming the place."""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice

from committer.iceberg.values.types import FloatType, IcebergType

_TEXT_MAX = 300
_SHOWN_MAX = 10


class Mismatch(Exception):
    """The found value is not the expected one."""


@dataclass(frozen=True, slots=True)
class Check:
    """`run` returns where everything is as expected, and raises where not. It may name differences
    that are expected.
    """

    name: str
    run: Callable[[], Iterable[str] | None]


@dataclass(slots=True)
class Outcome:
    """How many checks have passed, and one line for each that has failed. `differences`: in how
    many of those that have passed each expected difference is.
    """

    passed: int = 0
    failures: list[str] = field(default_factory=list)
    differences: Counter[str] = field(default_factory=Counter)

    def run(self, checks: Iterable[Check]) -> None:
        """Run all of them; whatever one raises is its failure."""
        for check in checks:
            try:
                expected = check.run()
            except Exception as error:  # noqa: BLE001  # a fault of one check is its result
                text = str(error) if isinstance(error, Mismatch) else repr(error)
                self.failures.append(f"{check.name}: {text[: 4 * _TEXT_MAX]}")
            else:
                self.passed += 1
                self.differences.update(set(expected or ()))

    def add(self, other: Outcome) -> None:
        self.passed += other.passed
        self.failures += other.failures
        self.differences += other.differences

    @property
    def shown(self) -> list[str]:
        """The first failures, and how many there are beside them."""
        more = len(self.failures) - _SHOWN_MAX
        rest = [f"… and {more} more"] if more > 0 else []
        return [*islice(self.failures, _SHOWN_MAX), *rest]

    @property
    def closing(self) -> str:
        return f"{self.passed} passed, {len(self.failures)} failed"


def same(found: object, wanted: object, place: str = "") -> None:
    """Check that both are equal as JSON values; objects may differ in the order of their keys.

    1, 1.0 and true are three values; -0.0 and 0.0 two.
    Errors: `Mismatch` that names the first place where they differ.
    """
    if isinstance(found, dict) and isinstance(wanted, dict):
        _same_keys(set(found), set(wanted), place)
        for key, value in wanted.items():
            same(found[key], value, f"{place}.{key}" if place else str(key))
    elif isinstance(found, list) and isinstance(wanted, list):
        if len(found) != len(wanted):
            raise _mismatch(f"{len(found)} elements", f"{len(wanted)}", place)
        for number, (one, other) in enumerate(zip(found, wanted, strict=True)):
            same(one, other, f"{place}[{number}]")
    elif type(found) is not type(wanted) or repr(found) != repr(wanted):
        raise _mismatch(repr(found), repr(wanted), place)


def _same_keys(found: set[object], wanted: set[object], place: str) -> None:
    if found != wanted:
        names = ", ".join(sorted(str(key) for key in found ^ wanted))
        raise Mismatch(f"{place or 'top'}: only one side has {names[:_TEXT_MAX]}")


def _mismatch(found: str, wanted: str, place: str) -> Mismatch:
    start = f"{place}: " if place else ""
    return Mismatch(f"{start}found {found[:_TEXT_MAX]}, expected {wanted[:_TEXT_MAX]}")


def same_value(kind: IcebergType, found: object, wanted: object, place: str = "") -> None:
    """Check as `same` does, for JSON single values of a type.

    Java 17 prints some floats with a digit too many or a neighbor of the nearest digits; later
    ones, and we, print the nearest of the shortest. Equal floats are equal values.
    """
    if kind == FloatType() and isinstance(found, float) and isinstance(wanted, float):
        found, wanted = _as_float(found), _as_float(wanted)
    same(found, wanted, place)


def same_human(kind: IcebergType, found: str, wanted: str, place: str = "") -> None:
    """Check as `same_value` does, for the text of a value."""
    if kind == FloatType() and found != wanted:
        same(_as_float(float(found)), _as_float(float(wanted)), place)
    else:
        same(found, wanted, place)


def as_floats(json_value: object) -> object:
    """Return every number with a point as the nearest float of 4 bytes."""
    match json_value:
        case float():
            return _as_float(json_value)
        case dict():
            return {key: as_floats(value) for key, value in json_value.items()}
        case list():
            return [as_floats(value) for value in json_value]
    return json_value


def _as_float(value: float) -> float:
    if math.isnan(value) or math.isinf(value):
        return value
    (found,) = struct.unpack("<f", struct.pack("<f", value))
    return float(found)
