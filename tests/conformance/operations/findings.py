"""Where two answers to a case differ: what Iceberg Java has said, and what Frazil says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.conformance.operations.case import OK, Answer, Case, Step, live_names
from tests.conformance.operations.lines import Line


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
    # What Frazil said to the steps so far.
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


# Each is a state of the table that everything after it rests on: once it differs, so may the rest.
_STATES = ("code", "files")
# Follows from itself: once it differs, it goes on to differ.
_RUNNING = ("summary", "row ids", "manifests", "numbers")


def findings(case: Case, java: Sequence[Answer], frazil: Sequence[Answer]) -> Iterator[Finding]:
    """Yield where the answers differ, each difference once: not what follows from it."""
    told: set[str] = set()
    for number, (theirs, ours) in enumerate(zip(java, frazil, strict=True), start=1):
        forms = (_parts(theirs), _parts(ours))
        for what in {**forms[0], **forms[1]}:
            one, other = (form.get(what) for form in forms)
            follows = what == "row ids" and "manifests" in told
            if one == other or what in told or follows:
                continue
            if what in _RUNNING:
                told.add(what)
            yield Finding(case, number, what, one, other, frazil[:number])
            if what in _STATES:
                return
        for what, wanted, found in _inconsistent(ours):
            yield Finding(case, number, what, wanted, found, frazil[:number])


def _parts(answer: Answer) -> dict[str, Any]:
    """Return the parts of an answer that are compared by themselves."""
    found: dict[str, Any] = {
        "code": answer["code"],
        "refs": answer["moved"],
        "readable": not answer.get("unreadable", False),
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
        "numbers": (snapshot["sequence-number"], answer["last-sequence-number"]),
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
    given = (snapshot.get("first-row-id"), snapshot.get("added-rows"), answer.get("next-row-id"))
    return given, dict(sorted(files.items()))


def line_findings(line: Line, frazil: Sequence[Answer]) -> Iterator[Finding]:
    """Yield where Frazil's answers differ from what a line says: the first of it."""
    for number, (wanted, ours) in enumerate(zip(line.wanted(), frazil, strict=False), start=1):
        for what, java in wanted.items():
            found = line.part(what, ours) if ours["code"] == OK or what == "code" else None
            if found != java:
                yield Finding(line.case, number, what, java, found, frazil[:number])
                return
