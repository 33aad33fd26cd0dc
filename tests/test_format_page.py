"""The page on the format names tests that exist, and tells of each reader what is tested."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.integration.written_features import DUCKDB, FEATURES, JAVA, PYICEBERG

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/format.md").read_text()


def test_every_test_that_the_page_names_exists() -> None:
    named = set(re.findall(r"`([\w/]+\.py)`", PAGE))
    assert len(named) > 30
    for name in named:
        assert any((ROOT / place / name).is_file() for place in (".", "tests")), name


def test_the_page_says_who_reads_each_table_that_we_write() -> None:
    for feature in FEATURES:
        told = ["no" if who in feature.without else "yes" for who in (JAVA, PYICEBERG, DUCKDB)]
        line = f"| `{feature.name}` | {' | '.join(told)} |"
        assert line in PAGE, f"not in docs/format.md: {line}"
