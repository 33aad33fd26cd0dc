"""A branch whose snapshots can be read back, and the operations that clients ask of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from committer.iceberg.entry.data_file import DataFile, DataFileContent
from committer.iceberg.expressions.expression import EqualTo, Expression, Reference
from committer.iceberg.manifest.manifest_list import encode_manifest_file, encode_manifest_list
from committer.iceberg.updates.metadata_update import RemoveSnapshots
from committer.plan.operations.change import Base, Change
from committer.plan.operations.conflict import Conflict
from committer.plan.operations.head import MissingObjectsError, ObjectRange
from committer.plan.operations.step_output import Produced, StepNames
from committer.plan.validation.validate import validate
from tests.plan.branches import FOLDER, Branch, _Read, data_file, path_of
from tests.support.builders.flights import build_flights

AA: Expression = EqualTo(Reference("carrier"), "AA")


@dataclass
class World(Branch):
    """`rounds`: the reads of the last validation, each with what it asked for."""

    rounds: tuple[frozenset[ObjectRange], ...] = ()
    label: str | None = None
    landed: int = 0

    @property
    def _names(self) -> StepNames:
        """Name each landing anew, also after an expiry."""
        number = self.landed + 1
        first = self.metadata.format_version == 1
        return StepNames(
            100 + number,
            0 if first else self.metadata.last_sequence_number + 1,
            f"{FOLDER}/metadata",
            UUID(int=number),
            UUID(int=1_000 + number),
        )

    def land(self, *changes: Change) -> Produced:
        """Land a step, and write its manifest list. `label`: a lie about its operation."""
        produced = super().land(*changes)
        self.landed += 1
        if self.label is not None:
            self._relabel(self.label)
        version = self.metadata.format_version
        rows = [encode_manifest_file(one.row, version) for one in self.manifests]
        snapshot = self.snapshot
        assert snapshot.manifest_list is not None
        self.objects[snapshot.manifest_list] = encode_manifest_list(
            rows,
            format_version=version,
            snapshot_id=snapshot.snapshot_id,
            parent_snapshot_id=snapshot.parent_snapshot_id,
            sequence_number=snapshot.sequence_number,
            first_row_id=0 if version > 2 else None,
            sync=bytes(16),
            extra_metadata={},
        )
        return produced

    def _relabel(self, label: str) -> None:
        summary = {**(self.snapshot.summary or {}), "operation": label}
        wrong = replace(self.snapshot, summary=summary)
        snapshots = tuple(
            wrong if one.snapshot_id == wrong.snapshot_id else one
            for one in self.metadata.snapshots
        )
        self.table = replace(self.table, metadata=replace(self.metadata, snapshots=snapshots))

    def expire(self, *, keep: int = 1) -> None:
        """Expire all snapshots but the newest."""
        gone = [one.snapshot_id for one in self.metadata.snapshots[:-keep]]
        self.update(RemoveSnapshots(tuple(gone)))

    def validate(self, change: Change) -> Conflict | None:
        """Validate on the head, and read what is asked for."""
        head, rounds = self.head, list[frozenset[ObjectRange]]()
        known: dict[ObjectRange, bytes] = {}
        while True:
            try:
                found = validate(change, replace(head, objects=_Read(known)))
            except MissingObjectsError as missing:
                assert missing.needs.isdisjoint(known)
                rounds.append(missing.needs)
                known |= {one: self._bytes(one) for one in missing.needs}
            else:
                self.rounds = tuple(rounds)
                return found

    def code(self, change: Change) -> str | None:
        found = self.validate(change)
        return None if found is None else found.code.value


def empty_world(format_version: int = 2) -> World:
    return World(build_flights(format_version=format_version))


def build_world(format_version: int = 2) -> World:
    """Build the base of all pairs: files a1 and a2 of carrier AA, b1 of BB, each appended."""
    world = empty_world(format_version)
    for name, carrier in (("a1", "AA"), ("a2", "AA"), ("b1", "BB")):
        world.append(data_file(name, carrier))
    return world


# --- Operations ----------------------------------------------------------------------------------


def bare_equality_delete(name: str, carrier: str = "AA") -> DataFile:
    """Build an equality delete of unknown values."""
    return DataFile(
        content=DataFileContent.EQUALITY_DELETES,
        file_path=f"{FOLDER}/data/{name}.parquet",
        partition=(carrier,),
        record_count=1,
        file_size_in_bytes=10,
        equality_ids=(1,),
        sort_order_id=0,
    )


def positions(world: World, name: str, of: str, at: int = 0) -> DataFile:
    """Build a deletion vector, in version 2 a position delete file of the whole partition."""
    if world.metadata.format_version > 2:
        return world.vectors(name, **{of: [at]})[0]
    return DataFile(
        content=DataFileContent.POSITION_DELETES,
        file_path=f"{FOLDER}/data/{name}.parquet",
        partition=("AA",),
        record_count=1,
        file_size_in_bytes=10,
    )


Make = Callable[[World, Base, str], Change]


def _append(world: World, base: Base, tag: str) -> Change:
    return world.change("append", data_file(tag))


def _overwrite(isolation: str | None) -> Make:
    def make(world: World, base: Base, tag: str) -> Change:
        file = data_file(tag)
        return world.change("overwrite", file, row_filter=AA, base=base, isolation_level=isolation)

    return make


def _copy(of: str, isolation: str) -> Make:
    def make(world: World, base: Base, tag: str) -> Change:
        return world.change(
            "overwrite",
            data_file(tag),
            removed=(of,),
            base=base,
            conflict_filter=AA,
            isolation_level=isolation,
        )

    return make


def _replace(isolation: str | None) -> Make:
    def make(world: World, base: Base, tag: str) -> Change:
        return world.change(
            "replace-partitions", data_file(tag), base=base, isolation_level=isolation
        )

    return make


def _delta(of: str, isolation: str, *, updates: bool = False) -> Make:
    def make(world: World, base: Base, tag: str) -> Change:
        delete = positions(world, f"{tag}d", of)
        files = (delete, data_file(f"{tag}n")) if updates else (delete,)
        return world.change(
            "row-delta",
            *files,
            base=base,
            conflict_filter=AA,
            isolation_level=isolation,
            updates_rows=updates,
            referenced_data_files=frozenset({path_of(of)}),
        )

    return make


def _upsert(*, adds: bool) -> Make:
    def make(world: World, base: Base, tag: str) -> Change:
        delete = bare_equality_delete(f"{tag}e")
        return world.change("row-delta", *((data_file(tag), delete) if adds else (delete,)))

    return make


def _rewrite(*of: str, number: int | None = None) -> Make:
    def make(world: World, base: Base, tag: str) -> Change:
        return world.change(
            "rewrite-files",
            data_file(tag),
            removed=of,
            base=base,
            data_sequence_number=number,
        )

    return make


OPERATIONS: Mapping[str, Make] = {
    "append a": _append,
    "ow filter a none": _overwrite(None),
    "ow filter a snap": _overwrite("snapshot"),
    "ow filter a ser": _overwrite("serializable"),
    "cow a1 snap": _copy("a1", "snapshot"),
    "cow a1 ser": _copy("a1", "serializable"),
    "cow a2 ser": _copy("a2", "serializable"),
    "cow a2 snap": _copy("a2", "snapshot"),
    "replp a none": _replace(None),
    "replp a snap": _replace("snapshot"),
    "replp a ser": _replace("serializable"),
    "delete p=a": lambda world, base, tag: world.change("delete", row_filter=AA),
    "delete a1 must": lambda world, base, tag: world.change("delete", removed=("a1",)),
    "mor DELETE a1 snap": _delta("a1", "snapshot"),
    "mor DELETE a1 ser": _delta("a1", "serializable"),
    "mor DELETE a2 snap": _delta("a2", "snapshot"),
    "mor UPDATE a1 snap": _delta("a1", "snapshot", updates=True),
    "mor UPDATE a1 ser": _delta("a1", "serializable", updates=True),
    "mor UPDATE a2 snap": _delta("a2", "snapshot", updates=True),
    "upsert eq a": _upsert(adds=True),
    "eq only a": _upsert(adds=False),
    "rewrite a1a2": _rewrite("a1", "a2"),
    "rewrite a1a2 seq": _rewrite("a1", "a2", number=3),
    "rewrite a1": _rewrite("a1"),
    "rewrite a1 seq": _rewrite("a1", number=3),
    "rewrite a2": _rewrite("a2"),
}
