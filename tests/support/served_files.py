"""The files whose tests need servers, Spark or minutes, by their text: to collect the others takes
each worker of that part of `make test` as long as ten tests.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

_MARKS = ("server", "spark", "slow")
# The parameters of a contract are marked where the adapters are listed.
_TEXT = re.compile(rf"mark\.({'|'.join(_MARKS)})\b|from tests\.support\.catalogs\.catalogs import")


def served_files(root: Path) -> list[str]:
    paths = sorted((root / "tests").rglob("test_*.py"))
    return [str(path.relative_to(root)) for path in paths if is_served(path)]


def is_served(path: Path) -> bool:
    return bool(_TEXT.search(path.read_text()))


def check_served(items: list[pytest.Item]) -> None:
    """Raise UsageError if a test has such a mark in a file that `served_files` leaves out."""
    marked = {item.path for item in items if any(map(item.get_closest_marker, _MARKS))}
    if unseen := sorted(path for path in marked if not is_served(path)):
        raise pytest.UsageError(
            f"{unseen[0]} has a test with one of the marks {', '.join(_MARKS)}, and its text has"
            " none: tests/support/served_files.py must find it"
        )
