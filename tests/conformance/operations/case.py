"""A case of operations: a table, and steps that follow one another on it; and what comes of each.

A case is a JSON object, so that Iceberg Java (`Operations.java`) and Frazil read the same one:
`case` (its name), `version`, `spec` (`p`: partitioned by `p`; `none`), `properties`, `steps`.

A step says in `do` what happens: `append`, `overwrite`, `replace-partitions`, `delete`,
`row-delta`, `rewrite`, `rewrite-manifests`, `cherry-pick`, `set-current`, `roll-back`,
`create-branch`, `create-tag`, `fast-forward`, `remove-branch`, `change-spec`, `set-properties`,
`upgrade`, `expire`. Its other keys, each absent if it does not apply:

* `from`: the operation starts from the head after so many steps; absent: it has no start
* `branch`; `stage`: the WAP id of a snapshot without a branch; `fast`: an append merges nothing
* `add`: data files (`name`, `at`: the partition path; `spec`, `records`, `ids`: bounds of `id`)
* `add-deletes`: delete files (`name`, `at`, `kind`: `position`, `equality`, `dv`; `of`: data file)
  (and of a vector `positions`, `size`: the bytes of its blob)
* `remove`, `remove-deletes`, `exist`: names of files; `filter`, `conflict-filter`: expressions
* `level`: `snapshot`, `serializable`; `update`: the deleted rows come again in added files
* `must-exist`, `append-only`, `within-filter`; `number`: a data sequence number
* `step`: the number of the step whose snapshot is meant; `name`, `to`: branches

An answer has `code` (`ok`, or why not), `snapshot` (what was added, see `Operations.describe`),
`moved` (refs, by the number of the step whose snapshot they are at), `last-sequence-number`,
`next-row-id`, `unreadable`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

Step = dict[str, Any]
Answer = dict[str, Any]

OK = "ok"
_DIGEST_CHARS = 10


@dataclass(frozen=True, slots=True)
class Case:
    """A table and the steps on it."""

    name: str
    version: int
    spec: str
    properties: dict[str, str]
    steps: tuple[Step, ...]

    def printed(self) -> dict[str, Any]:
        return {
            "case": self.name,
            "version": self.version,
            "spec": self.spec,
            "properties": self.properties,
            "steps": list(self.steps),
        }

    @property
    def digest(self) -> str:
        """Of the table and the steps, under any name."""
        return digest({key: part for key, part in self.printed().items() if key != "case"})

    @property
    def label(self) -> str:
        """The name without the place and the answer of a line: `2|p|append a|append a`."""
        return self.name.partition(" ")[2].rpartition("|")[0] or self.name

    @classmethod
    def parse(cls, document: dict[str, Any]) -> Case:
        return cls(
            document["case"],
            document["version"],
            document["spec"],
            document["properties"],
            tuple(document["steps"]),
        )


def digest(json_value: object) -> str:
    """Return the digest of a JSON value, for the keys of what is expected."""
    printed = json.dumps(json_value, sort_keys=True, separators=(",", ":"))
    return sha256(printed.encode()).hexdigest()[:_DIGEST_CHARS]


def read_cases(path: Path) -> Iterator[tuple[Case, list[Answer]]]:
    """Yield the cases of a file, each with the answers to its steps."""
    for text in path.read_text().splitlines():
        document = json.loads(text)
        yield Case.parse(document), document["answers"]


def live_names(answer: Answer) -> set[str]:
    """Return the names of the files that are live in the snapshot of an answer."""
    return {
        name
        for manifest in answer["snapshot"]["manifests"]
        for status, name, *_ in manifest["entries"]
        if status != "deleted"
    }
