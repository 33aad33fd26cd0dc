"""The output of one step of a batch: the contract between the plan of a commit, which gives a step
its number and its names, and what makes the manifests of an operation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from committer.iceberg.entry.data_file import ManifestEntry
from committer.iceberg.values.locations import manifest_location
from committer.plan.ledger.state import ListedManifest
from committer.ports.storage import NewObject


@dataclass(frozen=True, slots=True)
class StepNames:
    """The identity of a step's snapshot, and the names of its files.

    `commit_uuid` names files that are the same in every attempt at the batch, `attempt_uuid` those
    that depend on the base. `number` is that of the step in its batch: no two steps share a name.
    """

    snapshot_id: int
    sequence_number: int
    metadata_folder: str
    commit_uuid: UUID
    attempt_uuid: UUID
    number: int = 0

    def manifest(self, index: int) -> str:
        """Return the name of a manifest that depends on the base; each of a step has its index."""
        return manifest_location(self.metadata_folder, self.attempt_uuid, self.of_step(index))

    def of_step(self, index: int) -> int:
        """Return a number that no other step of the batch has."""
        return (self.number << 20) + index


@dataclass(frozen=True, slots=True)
class Produced:
    """The branch after a step, and what has to be written for it.

    `manifests`: the rows of the step's manifest list, in order. A row that is new or has changed
    has no encoded bytes yet, and the ids of the step; without a first row id it gets one. `label`
    and `counts` make the summary, `extra` are its other entries. `removed`: the entries of the
    files that it removes, as they were.
    """

    label: str
    manifests: tuple[ListedManifest, ...]
    counts: Mapping[str, int]
    extra: Mapping[str, str] = field(default_factory=dict)
    objects: tuple[NewObject, ...] = ()
    removed: tuple[ManifestEntry, ...] = ()
