"""Sentences name their subject (tools/prose.py); the docstrings of functions open with a verb, and
no module's with a question."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tools.prose import ROOT, Passage, code_prose, page_prose, passages

PER_THOUSAND_MAX = 1.0
PRODUCTION = ("committer", "workers", "frazil", "pyspark_frazil")
# The rule D401 of the linter knows the other words with which a docstring must not open.
NO_VERB = re.compile(
    r"(?:Also|And|As|At|Behind|Below|Both|But|By|Each|Else|Errors|Every|Everything|Few|First|For"
    r"|From|How|If|In|Is|It|Its|Many|Most|Neither|No|None|Not|Nothing|Of|On|Once|One|Only|Or|Our"
    r"|Over|Same|So|Some|Such|That|Their|There|These|They|Those|To|True|Two|Until|What|When|Where"
    r"|Whether|Which|While|Whole|Why|With|Without)\b|[^A-Z]"
)
# "Which adapter serves a location." names no subject, and a question none that answers it.
HEADLESS = re.compile(
    r"(?:Are|Did|Has|Have|How|Is|Was|Were|What|When|Where|Whether|Which|Who|Whose|Why)\b"
    r"|.*\?(?:\s|$)"
)
NAMELESS = re.compile(r"\b(?:nobody|somebody|whoever)\b.{0,60}", re.I)


# Of everything, and of the pages alone, where the words are fewer.
@pytest.mark.parametrize(
    ("below", "words_min"),
    [
        pytest.param((), 100_000, marks=pytest.mark.thorough),
        (("docs/", "README.md", "CONTRIBUTING.md"), 40_000),
    ],
)
def test_headless_sentences_are_rare(below: tuple[str, ...], words_min: int) -> None:
    words, found = 0, list[str]()
    for passage in passages(ROOT, *below):
        words += len(passage.text.split())
        found += [f"{passage.path}:{line}: {text[:90]}" for line, text in passage.headless()]
    assert words > words_min, "no prose was found"
    assert 1000 * len(found) / words < PER_THOUSAND_MAX, "\n".join(found)


def function_docstrings(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each docstring of a function; a property is none."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        decorators = {ast.unparse(one) for one in node.decorator_list}
        text = ast.get_docstring(node)
        if text and not decorators & {"property", "cached_property"}:
            yield node.lineno, text


@pytest.mark.thorough
def test_docstrings_of_functions_open_with_a_verb() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text.splitlines()[0]}"
        for folder in PRODUCTION
        for path in (ROOT / folder).rglob("*.py")
        for line, text in function_docstrings(path.read_text())
        if NO_VERB.match(text)
    ]
    # The command's own line, which `frazil --help` begins with.
    assert [one for one in found if not one.endswith("one Apache Iceberg table, one commit.")] == []


@pytest.mark.parametrize(
    ("docstring", "is_verb"),
    [
        ("Return the sum.", True),
        ("Whether it is kept.", False),
        ("Errors: `OSError`.", False),
        ("`month(at)` as a spec.", False),
        ("16 bytes.", False),
    ],
)
def test_an_opening_without_a_verb_is_found(docstring: str, is_verb: bool) -> None:
    assert (NO_VERB.match(docstring) is None) is is_verb


def test_docstrings_of_modules_say_what_the_module_does() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {text.splitlines()[0]}"
        for folder in (*PRODUCTION, "bench", "tools")
        for path in (ROOT / folder).rglob("*.py")
        if HEADLESS.match(text := ast.get_docstring(ast.parse(path.read_text())) or "")
    ]
    assert found == []


@pytest.mark.parametrize(
    ("docstring", "is_headless"),
    [
        ("Assigns shards to committers.", False),
        ("Whichever; the way of a `?x=1` in a URL.", False),
        ("Which committer owns which shard.", True),
        ("Did others add files? Code `added`.", True),
        ("A report: is the loop alive?", True),
    ],
)
def test_a_headless_opening_of_a_module_is_found(docstring: str, is_headless: bool) -> None:
    assert (HEADLESS.match(docstring) is not None) is is_headless


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


def test_a_string_hides_no_comment_and_a_comment_no_string() -> None:
    source = """a = "#1"  # it's 2

b = '\\'#3'  # 4
c = '''
# 5
'''
# 6 "
d = f"{a}#7"
# 8
"""
    assert list(code_prose(source)) == [(1, "it's 2"), (3, "4"), (7, '6 "'), (9, "8")]


def test_a_docstring_is_found_at_every_depth() -> None:
    source = (
        'try:\n    pass\nexcept E:\n    class C:\n        "Who."\n'
        'match a:\n    case 1:\n        def f():\n            "What."\n'
    )
    assert sorted(code_prose(source)) == [(5, "Who."), (9, "What.")]


def test_the_prose_of_a_page_is_its_text_and_its_cells_but_no_code() -> None:
    ((line, text),) = page_prose("# Page\n```\nWhat\n```\n| a | Who asks |\n")
    page = Passage("page", line, text)
    assert [line for line, _ in page.headless()] == [5]
    assert "What" not in text
