"""Wrong answers of Frazil, planted one at a time, and how many of them the comparison notices.

`make conformance-plants [EVERY=N]` plants one of each kind in every line and case, or in each N-th,
at a step that a seed chooses of those that can have it, and prints the score of each kind. Exit
code 1: less than 95 % of a kind are noticed.
"""

from __future__ import annotations

import copy
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from typing import Any

from tests.conformance.check import Mismatch
from tests.conformance.operations.case import OK, Answer, Case, Step
from tests.conformance.operations.expected import check_case, packed_cases
from tests.conformance.operations.frazil_table import CaseRun

NOTICED_MIN = 0.95
_SEED = 37
_CODES = ("added", "deleted", "exist", "filedel", "missing", "newdel")

# Changes an answer; false: it has nothing of this kind.
_Plant = Callable[[Answer, Random], bool]


@dataclass(slots=True)
class Score:
    """How many plants of each kind were made, how many noticed; `missed`: the places of others."""

    planted: Counter[str] = field(default_factory=Counter)
    noticed: Counter[str] = field(default_factory=Counter)
    missed: list[str] = field(default_factory=list)

    def share(self, kind: str) -> float:
        return self.noticed[kind] / self.planted[kind]

    def below_minimum(self) -> list[str]:
        """Return the kinds of which too few are noticed, and those that were never planted."""
        return [kind for kind in PLANTS if not self.planted[kind] or self.share(kind) < NOTICED_MIN]


@dataclass(slots=True)
class Recorded:
    """Gives recorded answers; each was made on the table from which its step had to start."""

    answers: Sequence[Answer]
    _taken: int = 0

    def take(self, step: Step) -> Answer:
        self._taken += 1
        return self.answers[self._taken - 1]

    def restart(self, answer: Answer, step: Step) -> None:
        pass


@dataclass(slots=True)
class Recorder:
    """Takes the steps as Frazil does, and keeps the answers."""

    run: CaseRun
    answers: list[Answer] = field(default_factory=list)

    def take(self, step: Step) -> Answer:
        self.answers.append(self.run.take(step))
        return self.answers[-1]

    def restart(self, answer: Answer, step: Step) -> None:
        self.run.restart(answer, step)


def score(cases: Iterable[tuple[Case, list[Answer]]], *, seed: int = _SEED) -> Score:
    """Plant one wrong answer of each kind in each case. Errors: `Mismatch` of a case that is not
    as expected before anything is planted.
    """
    total = Score()
    for case, java in cases:
        recorder = Recorder(CaseRun(case))
        check_case(case, java, recorder)
        random = Random(f"{seed} {case.digest}")
        for kind, plant in PLANTS.items():
            for number, answer in _first(plant, recorder.answers, random):
                total.planted[kind] += 1
                if _is_noticed(case, java, recorder.answers, number, answer):
                    total.noticed[kind] += 1
                else:
                    total.missed.append(f"{kind}: step {number + 1} of {case.name}")
    return total


def _first(
    plant: _Plant, answers: Sequence[Answer], random: Random
) -> Iterator[tuple[int, Answer]]:
    """Yield an answer with the plant, and its place from 0, if any step can have it."""
    for number in random.sample(range(len(answers)), len(answers)):
        answer = copy.deepcopy(answers[number])
        if plant(answer, random):
            yield number, answer
            return


def _is_noticed(
    case: Case, java: list[Answer], answers: list[Answer], number: int, planted: Answer
) -> bool:
    changed = [*answers[:number], planted, *answers[number + 1 :]]
    try:
        check_case(case, java, Recorded(changed))
    except Mismatch:
        return True
    return False


# --- Kinds ---------------------------------------------------------------------------------------


def _accept(answer: Answer, random: Random) -> bool:
    is_refusal: bool = answer["code"] != OK
    answer["code"] = OK
    return is_refusal


def _refuse(answer: Answer, random: Random) -> bool:
    is_accepted: bool = answer["code"] == OK
    answer["code"] = random.choice(_CODES)
    answer.pop("snapshot", None)
    answer["moved"] = {}
    return is_accepted


def _refuse_for_another(answer: Answer, random: Random) -> bool:
    code = answer["code"]
    answer["code"] = random.choice([one for one in _CODES if one != code])
    return bool(code != OK)


def _change_summary(answer: Answer, random: Random) -> bool:
    summary = _summary(answer)
    keys = sorted(key for key, text in summary.items() if text.isdecimal())
    if keys:
        key = random.choice(keys)
        summary[key] = str(int(summary[key]) + 1)
    return bool(keys)


def _drop_summary_key(answer: Answer, random: Random) -> bool:
    summary = _summary(answer)
    if summary:
        del summary[random.choice(sorted(summary))]
        return True
    return False


def _drop_file(answer: Answer, random: Random) -> bool:
    for manifest, entry in _entries(answer, random, is_live=True):
        manifest["entries"].remove(entry)
        manifest["counts"][0 if entry[0] == "added" else 1] -= 1
        return True
    return False


def _revive_file(answer: Answer, random: Random) -> bool:
    for manifest, entry in _entries(answer, random, is_live=False):
        entry[0] = "existing"
        manifest["counts"][1] += 1
        manifest["counts"][2] -= 1
        return True
    return False


def _number(place: int) -> _Plant:
    def plant(answer: Answer, random: Random) -> bool:
        for _, entry in _entries(answer, random, is_live=True):
            if entry[place] is not None:
                entry[place] += 1
                return True
        return False

    return plant


def _change(*keys: str) -> _Plant:
    """Add 1 to a number of the answer."""

    def plant(answer: Answer, random: Random) -> bool:
        part: Any = answer
        for key in keys[:-1]:
            part = part.get(key, {})
        if part.get(keys[-1]) is None:
            return False
        part[keys[-1]] += 1
        return True

    return plant


def _relabel(answer: Answer, random: Random) -> bool:
    if "snapshot" not in answer:
        return False
    labels = {"append", "overwrite", "delete", "replace"} - {answer["snapshot"]["operation"]}
    answer["snapshot"]["operation"] = random.choice(sorted(labels))
    return True


def _keep_ref(answer: Answer, random: Random) -> bool:
    moved: dict[str, int | None] = answer["moved"]
    if moved:
        del moved[random.choice(sorted(moved))]
        return True
    return False


def _make_unreadable(answer: Answer, random: Random) -> bool:
    if answer.pop("unreadable", None) is None:
        answer["unreadable"] = True
    return True


def _count_manifest(answer: Answer, random: Random) -> bool:
    manifests = answer.get("snapshot", {"manifests": []})["manifests"]
    if manifests:
        random.choice(manifests)["counts"][random.randrange(6)] += 1
    return bool(manifests)


def _summary(answer: Answer) -> dict[str, str]:
    summary: dict[str, str] = answer.get("snapshot", {}).get("summary", {})
    return summary


def _entries(answer: Answer, random: Random, *, is_live: bool) -> Iterator[tuple[Any, Any]]:
    """Yield the live entries of a snapshot, or those that it removes, in a random order."""
    entries = [
        (manifest, entry)
        for manifest in answer.get("snapshot", {"manifests": []})["manifests"]
        for entry in manifest["entries"]
        if (entry[0] != "deleted" if is_live else entry[0] == "deleted" and entry[2])
    ]
    random.shuffle(entries)
    yield from entries


PLANTS: dict[str, _Plant] = {
    "refusal as accepted": _accept,
    "accepted as refused": _refuse,
    "another conflict code": _refuse_for_another,
    "another label": _relabel,
    "summary value": _change_summary,
    "summary key is missing": _drop_summary_key,
    "file is missing": _drop_file,
    "removed file lives on": _revive_file,
    "data sequence number of a file": _number(3),
    "file sequence number of a file": _number(4),
    "first row id of a file": _number(5),
    "sequence number of the snapshot": _change("snapshot", "sequence-number"),
    "first row id of the snapshot": _change("snapshot", "first-row-id"),
    "rows of the snapshot": _change("snapshot", "added-rows"),
    "last sequence number": _change("last-sequence-number"),
    "next row id": _change("next-row-id"),
    "ref did not move": _keep_ref,
    "readable or not": _make_unreadable,
    "counts of a manifest": _count_manifest,
}


def main(arguments: list[str]) -> int:
    every = int(arguments[0]) if arguments else 1
    total = score(islice(packed_cases(), 0, None, every))
    for kind in PLANTS:
        print(f"{kind}: {total.noticed[kind]} of {total.planted[kind]} noticed")
    for place in total.missed[:20]:
        print(f"  missed {place}")
    planted, noticed = total.planted.total(), total.noticed.total()
    print(f"all: {noticed} of {planted} noticed, {noticed / planted:.1%}")
    return 1 if total.below_minimum() else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
