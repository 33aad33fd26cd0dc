"""Random cases from a seed: a base of each kind, and some operations on it.

The generator keeps no more than a guess of what is live: an operation may well name a file that is
gone, and often starts from a state before the last steps. Then it is in conflict, or not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from committer.iceberg.deletes.deletion_vector import DeletionVector, encode_deletion_vector
from tests.conformance.operations.case import Case, Step

_MERGE_AT_ONCE = {"commit.manifest.min-count-to-merge": "2"}
_NEVER_MERGE = {"commit.manifest-merge.enabled": "false"}
_TELL_PARTITIONS = {"write.summary.partition-limit": "10"}
_IDS = ((0, 9), (10, 19), (20, 29))
_BRANCH = "side"


RECORDS = 10


def with_positions(delete: Step, positions: list[int]) -> Step:
    """Let a deletion vector have these positions, and the size that they take."""
    size_bytes = len(encode_deletion_vector(DeletionVector(positions)))
    return delete | {"positions": positions, "size": size_bytes}


@dataclass
class _Live:
    """The files of a branch, as far as is known: `at`, `spec`, and what else a delete needs."""

    data: dict[str, Step] = field(default_factory=dict)
    deletes: dict[str, Step] = field(default_factory=dict)

    def copy(self) -> _Live:
        return _Live(dict(self.data), dict(self.deletes))


_Make = Callable[[_Live], Step]


class CaseMaker:
    """Makes one case: what was done so far, and what may follow."""

    def __init__(self, random: Random, version: int, base: str) -> None:
        self.random = random
        self.version = version
        self.base = base
        self.steps: list[Step] = []
        self.specs = ["none" if base == "unpartitioned" else "p"]
        self.branches = {"main": _Live()}
        self.staged: list[int] = []
        self.setup = 0
        # The sequence number after the setup.
        self.number = 0
        self.named = 0

    # --- Files ---

    def name(self, start: str) -> str:
        self.named += 1
        return f"{start}{self.named}"

    def at(self, spec: int, p: str) -> str:
        fields = {"none": (), "p": (f"p={p}",), "pb": (f"p={p}", "id_bucket=1")}
        return "/".join(fields[self.specs[spec]])

    def file(self, p: str | None = None) -> Step:
        spec = len(self.specs) - 1
        if len(self.specs) > 1 and self.random.random() < 0.3:
            spec = 0
        at = self.at(spec, p or self.random.choice("aab"))
        made: Step = {"name": self.name("f"), "at": at, "spec": spec}
        if self.random.random() < 0.5:
            made["ids"] = list(self.random.choice(_IDS))
        return made

    def like(self, file: Step) -> Step:
        """Return a new file in the partition of another."""
        return {"name": self.name("f"), "at": file["at"], "spec": file["spec"]}

    def delete_of(self, name: str, file: Step, kind: str, *, scoped: bool = True) -> Step:
        made = {"name": self.name("d"), "kind": kind, "at": file["at"], "spec": file["spec"]}
        if kind == "dv" or (kind == "position" and scoped):
            made["of"] = name
        return with_positions(made, [self.named % RECORDS]) if kind == "dv" else made

    def position_kind(self) -> str:
        return "dv" if self.version >= 3 else "position"

    def some(self, names: dict[str, Step], most: int = 2) -> list[str]:
        """Return the names of one file or more of one partition."""
        if not names:
            return ["never"]
        first = self.random.choice(list(names))
        same = [
            one
            for one in names
            if one != first
            and (names[one]["at"], names[one]["spec"]) == (names[first]["at"], names[first]["spec"])
        ]
        self.random.shuffle(same)
        return [first, *same[: self.random.randint(0, most - 1)]]

    def filter(self) -> Any:
        ids = {"type": "lt", "term": "id", "value": 15}
        in_a = {"type": "eq", "term": "p", "value": "a"}
        choices = [in_a, in_a, {"type": "eq", "term": "p", "value": "b"}, ids, True]
        return self.random.choice(choices)

    # --- Steps ---

    def add(self, step: Step, branch: str = "main") -> None:
        if branch != "main":
            step["branch"] = branch
        self.steps.append(step)
        live = self.branches[branch]
        if "stage" in step:
            self.staged.append(len(self.steps))
            return
        for one in step.get("remove", ()):
            live.data.pop(one, None)
        for one in step.get("remove-deletes", ()):
            live.deletes.pop(one, None)
        if "filter" in step or step["do"] == "replace-partitions":
            self._remove_matching(live, step)
        live.data.update({one["name"]: one for one in step.get("add", ()) if isinstance(one, dict)})
        live.deletes.update({one["name"]: one for one in step.get("add-deletes", ())})

    def _remove_matching(self, live: _Live, step: Step) -> None:
        gone = [one["at"] for one in step.get("add", ())] if "filter" not in step else []
        filter = step.get("filter", False)
        if isinstance(filter, dict) and filter["term"] == "p":
            gone = [self.at(number, filter["value"]) for number in range(len(self.specs))]
        for name, one in list(live.data.items()):
            if filter is True or one["at"] in gone:
                del live.data[name]

    def start(self) -> Step:
        """Return from which state an operation starts: the newest, the base, or one between."""
        chance = self.random.random()
        if chance < 0.45:
            return {"from": self.setup}
        now = len(self.steps)
        return {"from": self.random.randint(self.setup, now) if chance < 0.7 else now}

    def checked(self) -> Step:
        """Return the start and the level of an operation, or nothing: then it is not checked."""
        if self.random.random() < 0.2:
            return {}
        return self.start() | {"level": self.random.choice(("snapshot", "serializable"))}

    def append(self, live: _Live) -> Step:
        step: Step = {"do": "append", "add": [self.file()]}
        if self.random.random() < 0.3:
            step["add"].append(self.file())
        return step | ({"fast": True} if self.random.random() < 0.4 else {})

    def overwrite_by_filter(self, live: _Live) -> Step:
        filter = self.filter()
        step: Step = {"do": "overwrite", "filter": filter, **self.checked()}
        if self.random.random() < 0.8:
            step["add"] = [self.file()]
            step["within-filter"] = self.random.random() < 0.3
        return self.narrowed(step, 0.3)

    def narrowed(self, step: Step, chance: float = 0.7) -> Step:
        """Return an operation, perhaps with a filter of what conflicts with it."""
        if "level" in step and self.random.random() < chance:
            step["conflict-filter"] = self.filter()
        return step

    def copy_on_write(self, live: _Live) -> Step:
        removed = self.some(live.data)
        step: Step = {"do": "overwrite", "remove": removed, **self.checked()}
        if self.random.random() < 0.8:
            step["add"] = [self.like(live.data.get(removed[0]) or self.file())]
        vectors = [name for name, one in live.deletes.items() if one.get("of") in removed]
        if vectors and self.random.random() < 0.6:
            step["remove-deletes"] = vectors
        return self.narrowed(step)

    def replace_partitions(self, live: _Live) -> Step:
        step: Step = {"do": "replace-partitions", "add": [self.file()], **self.checked()}
        return step | ({"append-only": True} if self.random.random() < 0.15 else {})

    def delete_by_filter(self, live: _Live) -> Step:
        return {"do": "delete", "filter": self.filter()}

    def delete_named(self, live: _Live) -> Step:
        step: Step = {"do": "delete", "remove": self.some(live.data)}
        return step | ({"must-exist": True} if self.random.random() < 0.5 else {})

    def merge_on_read(self, live: _Live) -> Step:
        target = self.some(live.data, most=1)[0]
        file = live.data.get(target) or self.file()
        scoped = self.random.random() < 0.6
        step: Step = {"do": "row-delta", "exist": [target], **self.checked()}
        step["add-deletes"] = [self.delete_of(target, file, self.position_kind(), scoped=scoped)]
        if self.random.random() < 0.5:
            step |= {"add": [self.like(file)]} | ({"update": True} if "from" in step else {})
        old = [n for n, one in live.deletes.items() if one.get("of") == target and "of" in one]
        if old and self.random.random() < 0.8:
            self._replace(step, old, live)
        return self.narrowed(step)

    def _replace(self, step: Step, old: list[str], live: _Live) -> None:
        """Remove the old deletes of a file; a vector takes over their positions."""
        step["remove-deletes"] = old
        (new,) = step["add-deletes"]
        if new["kind"] == "dv":
            positions = {one for name in old for one in live.deletes[name].get("positions", ())}
            new = with_positions(new, sorted(positions.union(new["positions"])))
            step["add-deletes"] = [new]

    def upsert(self, live: _Live) -> Step:
        file = live.data[self.some(live.data)[0]] if live.data else self.file()
        delete = self.delete_of("", file, "equality")
        if self.random.random() < 0.3:
            delete["ids"] = list(self.random.choice(_IDS))
        step: Step = {"do": "row-delta", "add-deletes": [delete]}
        return step | ({"add": [self.like(file)]} if self.random.random() < 0.7 else {})

    def row_delta_removing(self, live: _Live) -> Step:
        removed = self.some(live.data)
        step: Step = {"do": "row-delta", "remove": removed, **self.checked()}
        if self.random.random() < 0.7:
            step["add"] = [self.like(live.data.get(removed[0]) or self.file())]
        if "from" in step and self.random.random() < 0.5:
            step["update"] = True
        return self.narrowed(step)

    def remove_deletes(self, live: _Live) -> Step:
        if not live.deletes:
            return self.upsert(live)
        removed = self.some(live.deletes)
        step: Step = {"do": "row-delta", "remove-deletes": removed, **self.start()}
        return step | ({"add": [self.file()]} if self.random.random() < 0.5 else {})

    def rewrite(self, live: _Live) -> Step:
        removed = self.some(live.data)
        added = self.like(live.data.get(removed[0]) or self.file())
        added["records"] = 10 * len(removed)
        step: Step = {"do": "rewrite", "remove": removed, "add": [added], **self.start()}
        if self.version >= 2 and self.random.random() < 0.5:
            step["number"] = self.number
        return step

    def rewrite_deletes(self, live: _Live) -> Step:
        names = [n for n, one in live.deletes.items() if one["kind"] == "position"]
        if not names:
            return self.rewrite(live)
        removed = self.random.choice(names)
        old = live.deletes[removed]
        added = {**old, "name": self.name("d"), "number": self.number}
        step: Step = {"do": "rewrite", "remove-deletes": [removed], "add-deletes": [added]}
        return step | self.start()

    def rewrite_manifests(self, live: _Live) -> Step:
        return {"do": "rewrite-manifests"}

    def stage(self, live: _Live) -> Step:
        makes: list[_Make] = [self.append, self.append, self.replace_partitions]
        make = self.random.choice(makes + [self.upsert] * (self.version >= 2))
        return make(live) | {"stage": f"w{len(self.steps)}"}

    def cherry_pick(self, live: _Live) -> Step:
        return {"do": "cherry-pick", "step": self.random.choice(self.staged)}

    def move_main(self, live: _Live) -> Step:
        does = self.random.choice(("roll-back", "set-current"))
        return {"do": does, "step": self.random.randint(1, self.setup)}

    def fast_forward(self, live: _Live) -> Step:
        names = ["main", _BRANCH]
        self.random.shuffle(names)
        return {"do": "fast-forward", "name": names[0], "to": names[1]}

    def expire(self, live: _Live) -> Step:
        return {"do": "expire"}

    # --- Cases ---

    def operations(self) -> list[_Make]:
        always: list[_Make] = [
            *(self.append, self.overwrite_by_filter, self.copy_on_write, self.copy_on_write),
            *(self.replace_partitions, self.delete_by_filter, self.delete_named),
            *(self.rewrite, self.rewrite, self.rewrite_manifests),
        ]
        with_deletes: list[_Make] = [
            *(self.merge_on_read, self.merge_on_read, self.merge_on_read, self.upsert),
            *(self.row_delta_removing, self.remove_deletes, self.rewrite_deletes),
        ]
        return always + (with_deletes if self.version >= 2 else [])

    def make(self, name: str) -> Case:
        self._begin()
        for _ in range(self.random.randint(2, 4)):
            self._go_on()
        properties = {
            "merging": _MERGE_AT_ONCE,
            "no-merging": _NEVER_MERGE,
            "partitions-told": _TELL_PARTITIONS,
        }.get(self.base, {})
        steps = tuple(self.steps)
        return Case(name, self.first_version, self.specs[0], dict(properties), steps)

    @property
    def first_version(self) -> int:
        """The format version of the table before it is upgraded."""
        return self.version - (self.base == "upgraded")

    def _begin(self) -> None:
        # A manifest with several files is filtered; one with a single file is gone with it.
        for places in self.random.choice((("a", "a", "b"), ("aab",), ("ab", "a"), ("aa", "ab"))):
            add = [self.file(p) for p in places]
            self.add({"do": "append", "fast": True, "add": add})
        live = self.branches["main"]
        if self.base == "deletes" and self.version >= 2:
            self._begin_with_deletes(live)
        if self.base == "upgraded":
            self.steps.append({"do": "upgrade", "version": self.version})
        if self.base == "other-spec":
            self._change_spec()
            self.add({"do": "append", "fast": True, "add": [self.file("a")]})
        self.setup = len(self.steps)
        if self.first_version >= 2:
            self.number = sum(one["do"] not in ("change-spec", "upgrade") for one in self.steps)
        if self.base == "branch":
            self.steps.append({"do": "create-branch", "name": _BRANCH, "step": self.setup})
            self.branches[_BRANCH] = live.copy()
        if self.base == "staged":
            self.add(self.stage(live))

    def _begin_with_deletes(self, live: _Live) -> None:
        first, second, *_ = live.data.items()
        for delete in (
            self.delete_of(*first, self.position_kind()),
            self.delete_of("", second[1], "equality"),
        ):
            self.add({"do": "row-delta", "add-deletes": [delete]})

    def _change_spec(self) -> None:
        choice = self.random.choice(("more", "fewer") if self.version >= 2 else ("more",))
        if choice == "more":
            self.steps.append({"do": "change-spec", "add": ["bucket"]})
            self.specs.append("pb")
        else:
            self.steps.append({"do": "change-spec", "remove": ["p"]})
            self.specs.append("none")

    def _go_on(self) -> None:
        branch = "main"
        makes = self.operations()
        if self.base == "branch":
            branch = self.random.choice(("main", _BRANCH, _BRANCH))
            makes += [self.fast_forward] * 3
        if self.base == "staged":
            makes += [self.cherry_pick] * 12
        if self.base == "moved":
            makes += [self.move_main] * 8
        if self.base == "expired" and {"do": "expire"} not in self.steps:
            makes += [self.expire] * 12
        step = self.random.choice(makes)(self.branches[branch])
        self.add(step, branch if step["do"] in _ON_BRANCHES else "main")


_ON_BRANCHES = {"append", "overwrite", "replace-partitions", "delete", "row-delta", "rewrite"}
BASES = (
    *("plain", "unpartitioned", "merging", "no-merging", "partitions-told", "other-spec"),
    *("branch", "deletes", "staged", "moved", "expired", "upgraded"),
)


def random_cases(seed: int, count: int) -> Iterator[Case]:
    """Yield so many cases, with each base in each format version in turn."""
    for number in range(count):
        random = Random(f"{seed}-{number}")
        base = BASES[number % len(BASES)]
        version = (2, 3, 1, 3, 2, 3)[number // len(BASES) % 6]
        if base == "upgraded":
            version = max(2, version)
        yield CaseMaker(random, version, base).make(f"{seed}-{number} {base} v{version}")
