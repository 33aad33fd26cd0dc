"""Snapshot summaries: the entries of partitions and of the committing engine."""

from __future__ import annotations

from collections import Counter

import pytest

from committer.iceberg.entry.data_file import DataFile, ManifestContent, ManifestEntryStatus
from committer.iceberg.manifest.manifest import decode_manifest
from committer.iceberg.manifest.manifest_list import decode_manifest_list
from committer.iceberg.manifest.manifest_writer import ManifestContext, encode_additions
from committer.iceberg.metadata.table_metadata import parse_table_metadata
from committer.iceberg.schema.partition_spec import PartitionSpec, partition_type
from committer.iceberg.schema.schema import Schema
from committer.iceberg.splice.manifest_splice import ManifestPart
from committer.iceberg.splice.manifest_walk import walk_additions
from committer.plan.batch.partition_totals import (
    LIMIT_PROPERTY,
    count_partitions,
    partition_limit,
    summarize_totals,
)
from committer.plan.batch.submitted_manifest import CheckedManifest
from committer.ports.pointer_swap import LoadedTable
from committer.request.request_format import EncodedRequest
from tests.support.builders.bad_requests import entry, hand_over
from tests.support.builders.fixtures import expected, read_bytes
from tests.support.builders.flights import build_flights
from tests.support.builders.request_builders import build_file, build_line, seal
from tests.support.plan.committing import Table

KEYS = ("partition-summaries-included", "partitions.")


def told(summary: dict[str, str]) -> dict[str, str]:
    return {key: text for key, text in summary.items() if key.startswith(KEYS)}


def checked(files: list[DataFile], spec: PartitionSpec, schema: Schema) -> CheckedManifest:
    content = encode_additions(files, ManifestContext(2, schema, spec), sync=bytes(16)).content
    walked = walk_additions(content, partition_type(spec, schema), 2, ManifestContent.DATA)
    return CheckedManifest(spec.spec_id, ManifestPart(content, walked))


def test_partitions_are_told_letter_for_letter_as_iceberg_java_does() -> None:
    facts = expected("v2_summary_props")
    metadata = parse_table_metadata(read_bytes(facts["metadata_location"]))
    spec, schema = metadata.default_spec, metadata.current_schema
    limit = partition_limit(metadata.properties)
    found = 0
    for snapshot in metadata.snapshots:
        if snapshot.operation != "append":
            continue
        files = [
            one.data_file
            for row in decode_manifest_list(read_bytes(snapshot.manifest_list or "")).rows
            for one in decode_manifest(read_bytes(row.manifest_path), manifest_file=row).entries
            if one.status is ManifestEntryStatus.ADDED and one.snapshot_id == snapshot.snapshot_id
        ]
        # In one manifest, and each in its own.
        for groups in ([files], [[file] for file in files]):
            manifests = [checked(group, spec, schema) for group in groups]
            totals = count_partitions(manifests, spec, schema, limit)
            assert summarize_totals([totals], limit) == told(dict(snapshot.summary or {}))
        found += 1
    assert found == 3


def request_of(table: LoadedTable, epoch: int, *carriers: str | None) -> EncodedRequest:
    line = build_line(table, epoch=epoch)
    files = (
        build_file(table.metadata, line.attempt, number=number, partition=(carrier,))
        for number, carrier in enumerate(carriers)
    )
    return seal(line, [hand_over(table, *map(entry, files))])


@pytest.mark.parametrize(
    ("limit", "is_told"),
    [("2", True), ("9", True), ("1", False), ("0", False), (None, False), ("-2", False)],
)
def test_so_many_partitions_are_told_as_the_table_says(limit: str | None, is_told: bool) -> None:
    properties = {} if limit is None else {LIMIT_PROPERTY: limit}
    table = Table.of(build_flights(properties=properties))
    requests = (
        request_of(table.table, 1, "A A", None, "A A"),
        request_of(table.table, 2, "A A"),
    )
    summary = dict(table.commit(*requests).snapshot.summary or {})
    assert summary["changed-partition-count"] == "2"
    assert told(summary) == (
        {
            "partition-summaries-included": "true",
            "partitions.carrier=A+A": ("added-data-files=3,added-records=30,added-files-size=3002"),
            "partitions.carrier=null": (
                "added-data-files=1,added-records=10,added-files-size=1001"
            ),
        }
        if is_told
        else {}
    )


def test_an_unpartitioned_table_has_no_partitions_to_tell_of() -> None:
    table = Table.of(build_flights(fields=(), properties={LIMIT_PROPERTY: "9"}))
    line = build_line(table.table, epoch=1)
    file = build_file(table.table.metadata, line.attempt)
    summary = table.commit(seal(line, [hand_over(table.table, entry(file))])).snapshot.summary
    assert told(dict(summary or {})) == {}


def test_a_summary_names_the_engine_and_its_version() -> None:
    table = Table.of(build_flights())
    summary = table.commit(request_of(table.table, 1, "AA")).snapshot.summary or {}
    assert (summary["engine-name"], summary["engine-version"]) == ("frazil", "1.2.3")


def test_partitions_of_all_manifests_count_for_the_limit() -> None:
    one = {"day=1": Counter({"added-data-files": 1, "added-records": 2, "added-files-size": 3})}
    other = {"day=2": Counter({"added-data-files": 1, "added-records": 0, "added-files-size": 3})}
    assert summarize_totals([one, other], 1) == {}
    assert summarize_totals([one, None], 9) == {}
    assert summarize_totals([one, other, other], 2) == {
        "partition-summaries-included": "true",
        "partitions.day=1": "added-data-files=1,added-records=2,added-files-size=3",
        "partitions.day=2": "added-data-files=2,added-files-size=6",
    }
