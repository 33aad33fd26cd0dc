"""Where two answers to a case differ: what Iceberg Java has said, and what Frazil says."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tests.conformance.operations.case import Answer, Case, Step, digest, live_names

_TEXT_CHARS = 60
_FOLLOW_FROM_FILES = ("summary", "manifests", "row ids")


class Implementation(Protocol):
    """Answers the steps of a case; `restart`: goes on from another's answer to the last step."""

    def take(self, step: Step) -> Answer: ...

    def restart(self, answer: Answer, step: Step) -> None: ...


@dataclass(frozen=True, slots=True)
class Finding:
    """A step on which both differ. `what`: `code`, `label`, `files`, `live`, `numbers`, `summary`,
    `refs`, `readable`, `row ids`, `manifests`, `counts`, `lowest number`.
    """

    case: Case
    number: int
    what: str
    java: Any
    frazil: Any
    # All that identifies both answers: of another code, the whole answers.
    answers: Any
    # The answers to the steps before, on the table on which this step was taken.
    before: Sequence[Answer] = ()

    @property
    def step(self) -> Step:
        return self.case.steps[self.number - 1]

    @property
    def steps_before(self) -> Sequence[Step]:
        return self.case.steps[: self.number - 1]

    @property
    def has_vectors(self) -> bool:
        """Whether the table's position deletes are deletion vectors by now."""
        upgrades = (one["version"] for one in self.steps_before if one["do"] == "upgrade")
        return any(version >= 3 for version in (self.case.version, *upgrades))

    def live_before(self) -> set[str]:
        """Return what was live on the step's branch before it, in Frazil's table."""
        return self._live_after(self.number - 1)

    def live_at_start(self) -> set[str]:
        """Return what was live there at the start of the step's operation."""
        return self._live_after(self.step.get("from", 0))

    @property
    def key(self) -> str:
        """A line that is the same only for the same steps, the same place and the same answers."""
        digests = self.case.digest, digest(self.answers)
        contrast = _contrast(self.java, self.frazil)
        place = f"step {self.number} {self.step['do']}"
        return f"{digests[0]} {digests[1]} {self.case.label}: {place}: {self.what}: {contrast}"

    def _live_after(self, steps: int) -> set[str]:
        heads: dict[str, int] = {}
        for answer in self.before[:steps]:
            heads |= answer["moved"]
        head = heads.get(self.step.get("branch", "main"), heads.get("main"))
        return set() if head is None else live_names(self.before[head - 1])

    def __str__(self) -> str:
        return (
            f"step {self.number} ({self.step['do']}): {self.what}: found {self.frazil},"
            f" Java has {self.java}"
        )


def findings(case: Case, java: Sequence[Answer], frazil: Implementation) -> Iterator[Finding]:
    """Yield where the answers to a case differ, in all parts of all steps.

    After a step on which they differ, the next one starts from Java's table: each difference is
    that of its own step, and nothing follows from an earlier one.
    """
    before: list[Answer] = []
    for number, (step, theirs) in enumerate(zip(case.steps, java, strict=True), start=1):
        ours = frazil.take(step)
        differences = list(step_findings(case, number, theirs, ours, before))
        yield from differences
        if differences:
            frazil.restart(theirs, step)
        before = [*before, theirs if differences else ours]


def step_findings(
    case: Case, number: int, java: Answer, frazil: Answer, before: Sequence[Answer]
) -> Iterator[Finding]:
    """Yield where two answers to a step of a case differ. `before`: answers to the steps before.

    Where their codes differ, nothing else can be compared; where their files do, counts and
    manifests follow from the files. Such a difference is identified by all of both answers.
    """

    def finding(what: str, java: Any, frazil: Any, answers: Any = None) -> Finding:
        return Finding(case, number, what, java, frazil, answers or [java, frazil], before)

    theirs, ours = _parts(java), _parts(frazil)
    if theirs["code"] != ours["code"]:
        yield finding("code", theirs["code"], ours["code"], [theirs, ours])
    else:
        differing = [one for one in {**theirs, **ours} if theirs.get(one) != ours.get(one)]
        followers = _FOLLOW_FROM_FILES if "files" in differing else ()
        for what in (one for one in differing if one not in followers):
            whole = [theirs, ours] if what == "files" else None
            yield finding(what, theirs.get(what), ours.get(what), whole)
    for what, expected, actual in _inconsistent(frazil):
        yield finding(what, expected, actual)


def _parts(answer: Answer) -> dict[str, Any]:
    """Return the parts of an answer that are compared by themselves."""
    found: dict[str, Any] = {
        "code": answer["code"],
        "refs": answer["moved"],
        "readable": not answer.get("unreadable", False),
        "numbers": [None, answer["last-sequence-number"]],
        "row ids": [[None, None, answer.get("next-row-id")], {}],
    }
    snapshot = answer.get("snapshot")
    if snapshot is None:
        return found
    summary = snapshot["summary"]
    rows = [_inherited_by_all(one) for one in snapshot["manifests"]]
    entries = [
        (row["content"], *entry) for row in snapshot["manifests"] for entry in row["entries"]
    ]
    found |= {
        "label": snapshot["operation"],
        "files": sorted(filter(None, map(_file, entries))),
        "numbers": [snapshot["sequence-number"], answer["last-sequence-number"]],
        "summary": {key: text for key, text in summary.items() if not _counts_manifests(key)},
        "manifests": [rows, {key: text for key, text in summary.items() if _counts_manifests(key)}],
        "row ids": _row_ids(answer),
    }
    return found


def _inconsistent(answer: Answer) -> Iterator[tuple[str, Any, Any]]:
    """Yield what the manifest list says of a manifest that its entries do not: of manifests that
    are grouped otherwise than Java's, nothing else is compared.
    """
    for manifest in answer.get("snapshot", {"manifests": ()})["manifests"]:
        entries = manifest["entries"]
        statuses = [entry[0] for entry in entries]
        counts = [statuses.count(one) for one in ("added", "existing", "deleted")]
        if manifest["counts"][:3] != counts:
            yield "counts", counts, manifest["counts"][:3]
        live = [entry[3] for entry in entries if entry[0] != "deleted"]
        lowest = min(live, default=manifest["sequence-number"])
        if manifest["min-sequence-number"] != lowest:
            yield "lowest number", lowest, manifest["min-sequence-number"]


def _file(entry: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return a file as this snapshot has it, however its manifests carry it."""
    content, status, name, own, data_number, file_number, _ = entry
    if status == "deleted":
        return (content, name, "removed", data_number, file_number) if own else None
    state = "added" if status == "added" and own else "kept"
    return content, name, state, data_number, file_number


def _counts_manifests(key: str) -> bool:
    return key.startswith("manifests-") or key == "entries-processed"


def _inherited_by_all(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return a manifest without row ids, its entries in the order of their names."""
    entries = sorted(entry[:5] for entry in manifest["entries"])
    return {key: value for key, value in manifest.items() if key != "first-row-id"} | {
        "entries": entries
    }


def _row_ids(answer: Answer) -> Any:
    snapshot = answer["snapshot"]
    files = {
        entry[1]: entry[5]
        for manifest in snapshot["manifests"]
        for entry in manifest["entries"]
        if manifest["content"] == "data" and entry[0] != "deleted"
    }
    given = [snapshot.get("first-row-id"), snapshot.get("added-rows"), answer.get("next-row-id")]
    return [given, dict(sorted(files.items()))]


# --- Keys ----------------------------------------------------------------------------------------


def _contrast(java: Any, frazil: Any) -> str:
    """Return the parts of both answers that differ, for a reader: the digest has the rest."""
    if isinstance(java, dict) and isinstance(frazil, dict):
        keys = [key for key in {**java, **frazil} if java.get(key) != frazil.get(key)]
        java, frazil = ({key: one.get(key) for key in keys} for one in (java, frazil))
    elif isinstance(java, list) and isinstance(frazil, list):
        java, frazil = (
            [part for part in one if part not in other]
            for one, other in ((java, frazil), (frazil, java))
        )
    return " <> ".join(f"{_shortened(one)}" for one in (java, frazil))


def _shortened(part: Any) -> str:
    text = part if isinstance(part, str) else json.dumps(part, separators=(",", ":"))
    return text if len(text) <= _TEXT_CHARS else f"{text[: _TEXT_CHARS - 1]}…"
