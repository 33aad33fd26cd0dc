"""Transcripts of output, with parts masked that differ from run to run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from tests.first_hour.steps import Walk

_TRANSCRIPTS = Path(__file__).parent / "transcripts"
_VARYING = (
    (r"\x1b\[[0-9;?]*[A-Za-z]", ""),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uuid>"),
    (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|\+00:00| UTC)?", "<time>"),
    (r"\b\d{4}-\d\d-\d\d \d\d:\d\d(?: UTC|Z)?", "<time>"),
    (r"\b\d\d:\d\d:\d\dZ", "<time>"),
    (r"\bdatetime\.datetime\(\d{4}(?:, \d+){4,6}\)", "<time>"),
    (r"(?<![=\"])\b20\d\d-\d\d-\d\d\b", "<date>"),
    (r"\b[0-9a-f]{32,64}\b", "<hash>"),
    (r"\b(?=[a-f]*\d)[0-9a-f]{8}\b", "<start of uuid>"),
    (r"\b\d{15,20}\b", "<id>"),
    (r"\b1[789]\d{8,11}\b", "<ms>"),
    (r"\bpid \d+", "pid <pid>"),
    (r"\bprocess \d+", "process <pid>"),
    (r"\b\d[\d,]*(?:\.\d+)?(?: |\b)(?:ms|s|min)\b", "<duration>"),
    (r"\b\d[\d,]*(?:\.\d+)? (?:KiB|MiB|GiB|kB|MB|bytes)\b", "<size>"),
)
_COMPILED = [(re.compile(pattern), replacement) for pattern, replacement in _VARYING]
_RULES = re.compile(r"[─━]{3,}|-{6,}")
_GAP = re.compile(r"(?<=\S) {2,}")


def transcript_file(walk: Walk) -> Path:
    """Return where the kept transcript of a walk lies."""
    return _TRANSCRIPTS / f"{walk.name}.txt"


def settled(text: str, places: dict[str, str]) -> list[str]:
    """Return an output's lines, made equal for every run by names for the folders in `places`."""
    for folder, name in sorted(places.items(), key=lambda one: -len(one[0])):
        text = text.replace(folder, name)
    text = text.replace("\r\n", "\n")
    for pattern, replacement in _COMPILED:
        text = pattern.sub(replacement, text)
    # Columns are as wide as what stands in them.
    text = _GAP.sub("  ", _RULES.sub("──", text))
    return [line.rstrip() for line in text.splitlines()]


def masked(lines: list[str], varying: Mapping[str, str]) -> list[str]:
    """Replace the matches of these patterns. A pattern may span lines.

    Errors: `LookupError` for one that finds nothing: it would hide the loss of what it stands for.
    """
    text = "\n".join(lines)
    for pattern, replacement in varying.items():
        text, count = re.subn(pattern, replacement, text)
        if not count:
            raise LookupError(f"nothing like `{pattern}` was printed, but\n{text}")
    return text.split("\n") if varying else lines


def kept(lines: list[str], keep_from: str) -> list[str]:
    """Return the lines from the first with this text on. Errors: `LookupError` if there is none."""
    for number, line in enumerate(lines):
        if keep_from in line:
            return lines[number:]
    raise LookupError(f"nothing with `{keep_from}` was printed")
