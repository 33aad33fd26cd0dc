"""Frazil's answers to a case: every step is a request, planned as the committer plans it.

The table lives in memory, and each step is a commit of its own on the head as it is by then: the
request's own base is that of its step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from committer.errors import InvalidMetadataError, InvalidRequestError
from committer.iceberg.metadata.snapshot import Snapshot, SnapshotRef
from committer.iceberg.metadata.table_metadata import TableMetadata, new_table_metadata
from committer.iceberg.scan.plan_files import plan_files
from committer.iceberg.schema.partition_spec import UNPARTITIONED, PartitionField, PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.sort_order import UNSORTED
from committer.iceberg.updates.metadata_update import (
    AddSnapshot,
    RemoveSnapshotRef,
    RemoveSnapshots,
    SetSnapshotRef,
    Update,
)
from committer.iceberg.values.locations import metadata_file_location, metadata_folder
from committer.iceberg.values.transforms import IDENTITY
from committer.iceberg.values.types import LongType, NestedField, StringType
from committer.ports.pointer_swap import LoadedTable
from committer.request.request_format import EncodedRequest
from committer.request.table_identifier import TableIdentifier
from tests.conformance.operations.asked import Client
from tests.conformance.operations.case import OK, Answer, Case, Step, live_names
from tests.conformance.operations.case_table import CaseTable
from tests.conformance.operations.described_snapshot import History, SnapshotWriter
from tests.conformance.operations.told import place, told

_SCHEMA = Schema(
    (
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "p", StringType(), required=False),
    )
)
_BY_P = PartitionSpec(0, (PartitionField((2,), 1000, "p", IDENTITY),))
_LOCATION = "memory://warehouse/db/cases"
_NOW_MS = 1_800_000_000_000
# Ids of the snapshots of a table that was restarted, by the number of their step.
_RESTARTED = 900_000_000


def frazil_answers(case: Case) -> list[Answer]:
    """Return the answer to each step of a case."""
    run = CaseRun(case)
    return [run.take(step) for step in case.steps]


def together(case: Case, count: int) -> tuple[list[str], set[str]]:
    """Return the codes of the last so many steps of a case where these are requests of one batch,
    and the files that are live after them. The steps must start from a state before them.
    """
    run = CaseRun(case)
    for step in case.steps[:-count]:
        run.take(step)
    return run.land_together(case.steps[-count:]), run.live()


def _new_table(case: Case) -> LoadedTable:
    metadata = new_table_metadata(
        table_uuid=UUID(int=1),
        location=_LOCATION,
        schema=_SCHEMA,
        partition_spec=_BY_P if case.spec == "p" else UNPARTITIONED,
        sort_order=UNSORTED,
        properties=case.properties,
        format_version=case.version,
        now_ms=_NOW_MS - 1_000_000,
    )
    folder = metadata_folder(_LOCATION, metadata.properties)
    first = metadata_file_location(folder, 0, UUID(int=2))
    return LoadedTable(TableIdentifier.parse("db.cases"), metadata, first)


class CaseRun:
    """A case on its way: the table, its client, and what the steps have made so far.

    Takes the steps one after another. `restart` puts the table of another implementation in the
    place of what the last step has made, so that the next step can be compared on its own.
    """

    def __init__(self, case: Case) -> None:
        self._table = CaseTable.of(_new_table(case))
        self._client = Client()
        self._number = 0
        # The table before the last step.
        self._before = self._table.state
        # The head of every ref after so many steps.
        self._heads: list[Mapping[str, int]] = [{}]
        # The snapshot that a step made, by its number from 1.
        self._made: dict[int, int] = {}
        self._snapshots: dict[int, Snapshot] = {}
        # The snapshot that has added a file, by the file's name.
        self._added: dict[str, int] = {}

    @property
    def _metadata(self) -> TableMetadata:
        return self._table.state.metadata

    def take(self, step: Step) -> Answer:
        """Return the answer to the next step."""
        self._number += 1
        self._before = self._table.state
        before = {one.snapshot_id for one in self._metadata.snapshots}
        answer: Answer = {"code": self._run(step)}
        added = [one for one in self._metadata.snapshots if one.snapshot_id not in before]
        if added:
            self._made[self._number] = added[-1].snapshot_id
            answer["snapshot"] = self.described()
            self._remember(added[-1].snapshot_id, answer["snapshot"])
        answer["moved"] = self._moved()
        answer["last-sequence-number"] = self._metadata.last_sequence_number
        if self._metadata.format_version >= 3:
            answer["next-row-id"] = self._metadata.next_row_id
        return answer | ({} if self._is_readable() else {"unreadable": True})

    def described(self) -> dict[str, Any] | None:
        """Return the snapshot of the last step as it stands in the table; None without one."""
        snapshot = self._metadata.snapshot_by_id(self._made.get(self._number, 0))
        return None if snapshot is None else told(snapshot, self._names(), self._read)

    def restart(self, answer: Answer, step: Step) -> None:
        """Go on from the table that this answer to the last step describes."""
        self._heads.pop()
        self._snapshots.pop(self._made.pop(self._number, 0), None)
        after, self._table.state = self._table.state, self._before
        if "snapshot" in answer:
            snapshot = self._described_snapshot(answer["snapshot"], step)
            self._table.foreign(AddSnapshot(snapshot))
            self._remember(snapshot.snapshot_id, answer["snapshot"])
        elif answer["code"] == OK:
            self._table.state = after
        self._table.foreign(*self._moves(answer["moved"]))
        self._moved()

    def _remember(self, snapshot_id: int, described: Mapping[str, Any]) -> None:
        self._made[self._number] = snapshot_id
        for manifest in described["manifests"]:
            for status, name, own, *_ in manifest["entries"]:
                if own and status == "added":
                    self._added[name] = snapshot_id

    def _described_snapshot(self, described: Mapping[str, Any], step: Step) -> Snapshot:
        heads = self._heads[-1]
        history = History(self._snapshots, self._added)
        writer = SnapshotWriter(self._metadata, self._client.files, history)
        parent_id = heads.get(step.get("branch", "main"), heads.get("main"))
        written = writer.snapshot(
            described, snapshot_id=_RESTARTED + self._number, parent_id=parent_id
        )
        self._table.now_ms += 1_000
        self._table.objects |= written.objects
        return replace(written.snapshot, timestamp_ms=self._table.now_ms)

    def _moves(self, moved: Mapping[str, int | None]) -> Iterator[Update]:
        refs = self._metadata.refs
        for name, number in moved.items():
            if number is not None:
                ref = refs.get(name, SnapshotRef(0))
                yield SetSnapshotRef(name, replace(ref, snapshot_id=self._made[number]))
            elif name in refs:
                yield RemoveSnapshotRef(name)

    def _run(self, step: Step) -> str:
        if step["do"] == "expire":
            self._expire()
            return OK
        try:
            conflict = self._table.land_one(self._request(step))
        except InvalidRequestError as error:
            return f"refused {error.reason}"
        return OK if conflict is None else str(conflict.code)

    def land_together(self, steps: Sequence[Step]) -> list[str]:
        """Land steps as one batch, and return their codes."""
        found = self._table.land_together([self._request(step) for step in steps])
        return [OK if one is None else str(one.code) for one in found]

    def live(self) -> set[str]:
        """Return the files that are live on main."""
        head = self._metadata.current_snapshot
        if head is None:
            return set()
        return live_names({"snapshot": told(head, self._names(), self._read)})

    def _request(self, step: Step) -> EncodedRequest:
        self._table.objects.update(self._client.written)
        table = self._table.table
        if step["do"] in _ALTERATIONS:
            return self._client.alter(table, self._changes(step))
        if step["do"] == "cherry-pick":
            return self._client.request(table, step | {"source": self._snapshot(step)}, None)
        request = self._client.request(table, step, self._start(step))
        self._table.objects.update(self._client.written)
        return request

    def _changes(self, step: Step) -> Iterator[dict[str, Any]]:
        name = step.get("name")
        match step["do"]:
            case "set-current":
                yield {"action": "set-current-snapshot", "snapshot-id": self._snapshot(step)}
            case "roll-back":
                yield {"action": "rollback-to-snapshot", "snapshot-id": self._snapshot(step)}
            case "create-branch" | "create-tag":
                snapshot_id = self._snapshot(step)
                yield {"action": step["do"], "name": name, "snapshot-id": snapshot_id}
            case "fast-forward":
                yield {"action": "fast-forward", "branch": name, "to": step["to"]}
            case "upgrade":
                yield {"action": "upgrade-format-version", "format-version": step["version"]}
            case "change-spec":
                for one in step.get("add", ()):
                    yield {"action": "add-partition-field", **_PARTITION_FIELDS[one]}
                for one in step.get("remove", ()):
                    yield {"action": "remove-partition-field", "name": one}

    def _snapshot(self, step: Step) -> int:
        return self._made.get(step["step"], 404)

    def _start(self, step: Step) -> Snapshot | None:
        if "from" not in step:
            return None
        heads = self._heads[step["from"]]
        snapshot_id = heads.get(step.get("branch", "main"), heads.get("main"))
        if snapshot_id is None:
            return None
        return self._snapshots[snapshot_id]

    def _expire(self) -> None:
        """Remove what no ref names, as another engine does."""
        kept = {ref.snapshot_id for ref in self._metadata.refs.values()}
        gone = [one.snapshot_id for one in self._metadata.snapshots if one.snapshot_id not in kept]
        if gone:
            self._table.foreign(RemoveSnapshots(tuple(gone)))

    def _moved(self) -> dict[str, int | None]:
        steps = {snapshot_id: number for number, snapshot_id in self._made.items()}
        self._snapshots |= {one.snapshot_id: one for one in self._metadata.snapshots}
        before = self._heads[-1]
        now = {name: ref.snapshot_id for name, ref in self._metadata.refs.items()}
        self._heads.append(now)
        gone = dict.fromkeys(before.keys() - now.keys())
        changed = {name: steps.get(head) for name, head in now.items() if before.get(name) != head}
        return dict(sorted({**gone, **changed}.items()))

    def _names(self) -> dict[str, str]:
        return {
            place(file.file_path, file.content_offset): name
            for name, file in self._client.files.items()
        }

    def _read(self, location: str) -> bytes:
        return self._table.objects[location]

    def _is_readable(self) -> bool:
        try:
            for _ in plan_files(self._metadata, read=self._read):
                pass
        except InvalidMetadataError:
            return False
        return True


_ALTERATIONS = (
    *("set-current", "roll-back", "create-branch", "create-tag", "fast-forward", "change-spec"),
    "upgrade",
)
_PARTITION_FIELDS = {
    "bucket": {"source": "id", "transform": "bucket[4]", "name": "id_bucket"},
    "p": {"source": "p"},
}
