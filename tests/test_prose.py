"""Sentences name their subject: few open with a headless "what" or "who" (tools/prose.py)."""

from __future__ import annotations

import re

import pytest

from tools.prose import ROOT, Passage, code_prose, page_prose, passages

PER_THOUSAND_MAX = 1.0
NAMELESS = re.compile(r"\b(?:nobody|somebody|whoever)\b.{0,60}", re.I)


# Of everything, and of the pages alone, where the words are fewer.
@pytest.mark.parametrize(
    ("below", "words_min"), [((), 100_000), (("docs/", "README.md", "CONTRIBUTING.md"), 40_000)]
)
def test_headless_sentences_are_rare(below: tuple[str, ...], words_min: int) -> None:
    words, found = 0, list[str]()
    for passage in passages(ROOT, *below):
        words += len(passage.text.split())
        found += [f"{passage.path}:{line}: {text[:90]}" for line, text in passage.headless()]
    assert words > words_min, "no prose was found"
    assert 1000 * len(found) / words < PER_THOUSAND_MAX, "\n".join(found)


def test_pages_name_the_component_instead_of_nobody_and_somebody() -> None:
    words, found = 0, list[str]()
    for passage in passages(ROOT, "docs/", "README.md", "CONTRIBUTING.md"):
        words += len(passage.text.split())
        found += [f"{passage.path}: {one}" for one in NAMELESS.findall(passage.text)]
    assert 1000 * len(found) / words < PER_THOUSAND_MAX, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("What is kept goes last.", [1]),
        ("The sum is kept.\nWhoever needs it\nasks. Who asks, waits.", [2, 3]),
        ("Kinds:\n\n* What is big.\n- Whatever is small", [3, 4]),
        ("What is a lease? It says what it is, and who has it.", []),
        ("Whatsoever; Whole; the committer says what it does.", []),
    ],
)
def test_a_headless_sentence_is_found_with_its_line(text: str, lines: list[int]) -> None:
    assert [line for line, _ in Passage("module", 1, text).headless()] == lines


def test_the_prose_of_code_is_its_docstrings_and_comments() -> None:
    source = (
        '"""Module."""\n\n\ndef f():\n    """Who."""\n    x = "What"  # one\n\n    # two\n    # 3\n'
    )
    assert sorted(code_prose(source)) == [
        (1, "Module."),
        (5, "Who."),
        (6, "one"),
        (8, "two\n3"),
    ]


def test_the_prose_of_a_page_is_its_text_and_its_cells_but_no_code() -> None:
    ((line, text),) = page_prose("# Page\n```\nWhat\n```\n| a | Who asks |\n")
    page = Passage("page", line, text)
    assert [line for line, _ in page.headless()] == [5]
    assert "What" not in text
