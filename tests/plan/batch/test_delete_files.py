"""Delete files of a request: what each format version takes, and every way to be wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from committer.errors import InvalidRequestError
from committer.iceberg.entry.data_file import DataFile, DataFileContent, ManifestContent
from committer.iceberg.manifest.manifest_writer import ManifestContext, encode_additions
from committer.iceberg.schema.schema import Schema
from committer.iceberg.values.types import ListType, LongType, NestedField, StructType
from committer.plan.batch.request_check import CheckBasis, CheckedRequest, Checker
from committer.ports.pointer_swap import LoadedTable
from committer.reason import Reason
from committer.request.commit_request import CommitRequest
from committer.request.needs import Needs
from committer.request.request_format import InlineManifest, read_request, seal_request
from tests.support.builders.bad_requests import entry, file_of, hand_over
from tests.support.builders.flights import BY_DAY, FIELDS, build_flights
from tests.support.builders.request_builders import SYNC, build_line, changed_line, seal
from tests.support.iceberg.content_file_printer import print_content_file

NESTED = (
    NestedField(
        5,
        "place",
        StructType((NestedField(6, "x", LongType(), required=False),)),
        required=False,
    ),
    NestedField(7, "many", ListType(8, LongType(), element_required=False), required=False),
)


def build_table(format_version: int) -> LoadedTable:
    return build_flights(format_version=format_version, schema=Schema((*FIELDS, *NESTED)))


def line_of(table: LoadedTable, operation: str = "row-delta", **needs: object) -> CommitRequest:
    found = Needs.model_validate({name.replace("_", "-"): one for name, one in needs.items()})
    return changed_line(build_line(table), operation=operation, needs=found)


def delete(table: LoadedTable, line: CommitRequest, **changes: object) -> DataFile:
    """Build an equality delete file."""
    base: dict[str, object] = {
        "content": DataFileContent.EQUALITY_DELETES,
        "equality_ids": (1,),
        "record_count": 2,
        "file_size_in_bytes": 500,
    }
    return file_of(table, line, **base | changes)


def positions(table: LoadedTable, line: CommitRequest, **changes: object) -> DataFile:
    base = {"content": DataFileContent.POSITION_DELETES, "equality_ids": None}
    return delete(table, line, **base | changes)


def vector(table: LoadedTable, line: CommitRequest, number: int = 0, **changes: object) -> DataFile:
    """Build a vector in the request's Puffin file, one behind another."""
    base: dict[str, object] = {
        "file_format": "PUFFIN",
        "file_path": f"{table.metadata.location}/data/{line.attempt}.puffin",
        "referenced_data_file": f"{table.metadata.location}/data/a{number}.parquet",
        "content_offset": 4 + 50 * number,
        "content_size_in_bytes": 50,
        "value_counts": None,
        "null_value_counts": None,
        "lower_bounds": None,
        "upper_bounds": None,
    }
    return positions(table, line, **base | changes)


def manifest_of(table: LoadedTable, *files: DataFile, version: int | None = None) -> InlineManifest:
    metadata = table.metadata
    context = ManifestContext(
        version or metadata.format_version,
        metadata.current_schema,
        metadata.default_spec,
        ManifestContent.DELETES,
    )
    content = encode_additions(files, context, sync=SYNC).content
    rows = sum(file.record_count for file in files)
    return InlineManifest(content, "deletes", 0, len(files), rows)


def outcome(table: LoadedTable, line: CommitRequest, *manifests: InlineManifest) -> Reason | None:
    """Return the reason why a request is refused; None if it is good."""
    sealed = read_request(seal(line, manifests).content)
    checker = Checker(CheckBasis.of("frazil", table.metadata), table.metadata.current_schema)
    try:
        assert isinstance(checker.check(sealed), CheckedRequest)
    except InvalidRequestError as error:
        assert len(str(error)) > 30
        return _reason(error)
    return None


def _reason(error: InvalidRequestError) -> Reason | None:
    """Return the reason; None where only this version's limits are in the way."""
    return None if error.reason == Reason.UNSUPPORTED else Reason(error.reason)


def of_one(version: int, make: str, **changes: object) -> Reason | None:
    table = build_table(version)
    line = line_of(table)
    makers: dict[str, Callable[..., DataFile]] = {
        "delete": delete,
        "positions": positions,
        "vector": vector,
    }
    return outcome(table, line, manifest_of(table, makers[make](table, line, **changes)))


@pytest.mark.parametrize(
    ("version", "make", "changes"),
    [
        (2, "delete", {}),
        (3, "delete", {}),
        (2, "delete", {"equality_ids": (1, 2, 7)}),
        (2, "positions", {}),
        (2, "positions", {"referenced_data_file": "memory://warehouse/db/flights/data/a.parquet"}),
        (3, "vector", {}),
    ],
)
def test_delete_files_that_their_version_takes_are_good(
    version: int, make: str, changes: Mapping[str, object]
) -> None:
    assert of_one(version, make, **changes) is None


WRONG: dict[str, tuple[int, str, dict[str, object], Reason]] = {
    "no ids": (2, "delete", {"equality_ids": None}, Reason.MANIFEST_CONTENT_MISMATCH),
    "an id twice": (2, "delete", {"equality_ids": (1, 1)}, Reason.MANIFEST_CONTENT_MISMATCH),
    "an unknown id": (2, "delete", {"equality_ids": (99,)}, Reason.SCHEMA_MISMATCH),
    "a struct": (2, "delete", {"equality_ids": (5,)}, Reason.SCHEMA_MISMATCH),
    "an element": (2, "delete", {"equality_ids": (8,)}, Reason.SCHEMA_MISMATCH),
    "equality of a data file": (
        2,
        "delete",
        {"referenced_data_file": "x"},
        Reason.MANIFEST_CONTENT_MISMATCH,
    ),
    "equality at a place": (3, "delete", {"content_offset": 4}, Reason.MANIFEST_CONTENT_MISMATCH),
    "positions in version 3": (3, "positions", {}, Reason.MANIFEST_CONTENT_MISMATCH),
    "a vector of nothing": (
        3,
        "vector",
        {"referenced_data_file": None},
        Reason.MANIFEST_CONTENT_MISMATCH,
    ),
    "a vector nowhere": (3, "vector", {"content_offset": None}, Reason.MANIFEST_CONTENT_MISMATCH),
    "a vector before its file": (
        3,
        "vector",
        {"content_offset": -1},
        Reason.MANIFEST_CONTENT_MISMATCH,
    ),
    "a vector behind its file": (
        3,
        "vector",
        {"content_offset": 451},
        Reason.MANIFEST_CONTENT_MISMATCH,
    ),
    "a vector that is too small": (
        3,
        "vector",
        {"content_size_in_bytes": 19},
        Reason.MANIFEST_CONTENT_MISMATCH,
    ),
    "a vector without positions": (
        3,
        "vector",
        {"record_count": 0},
        Reason.MANIFEST_CONTENT_MISMATCH,
    ),
    "a vector that compares": (
        3,
        "vector",
        {"equality_ids": (1,)},
        Reason.MANIFEST_CONTENT_MISMATCH,
    ),
    "a vector elsewhere": (
        3,
        "vector",
        {"file_path": "memory://elsewhere/x.puffin"},
        Reason.PATH_NOT_ALLOWED,
    ),
    "a vector of no attempt": (
        3,
        "vector",
        {"file_path": "memory://warehouse/db/flights/data/x.puffin"},
        Reason.PATH_WITHOUT_ATTEMPT,
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_delete_file_is_refused_with_its_reason(name: str) -> None:
    version, make, changes, reason = WRONG[name]
    assert of_one(version, make, **changes) == reason


def test_a_manifest_of_an_older_version_brings_no_position_deletes_into_version_3() -> None:
    table = build_table(3)
    line = line_of(table)
    old = manifest_of(table, positions(table, line), version=2)
    assert outcome(table, line, old) == Reason.MANIFEST_CONTENT_MISMATCH
    assert outcome(table, line, manifest_of(table, delete(table, line), version=2)) is None


def test_version_1_takes_no_delete_files_and_no_sequence_number() -> None:
    table = build_table(1)
    line = line_of(table)
    context = build_table(2)
    newer = manifest_of(context, delete(table, line))
    assert outcome(table, line, newer) == Reason.FORMAT_VERSION_MISMATCH
    rewrite = line_of(
        table,
        "rewrite-files",
        base_snapshot_id=1,
        data_sequence_number=0,
        removed_data_files=["a"],
    )
    good = hand_over(table, entry(file_of(table, rewrite)))
    assert outcome(table, rewrite, good) == Reason.FORMAT_VERSION_MISMATCH


@pytest.mark.parametrize("operation", ["append", "overwrite", "replace-partitions"])
def test_an_operation_of_data_files_takes_no_delete_files(operation: str) -> None:
    table = build_table(2)
    line = line_of(table, operation)
    # The line says what its manifests are, and is refused by that already.
    with pytest.raises(InvalidRequestError, match="no manifest of deletes"):
        outcome(table, line, manifest_of(table, delete(table, line)))
    metadata = table.metadata
    document = print_content_file(
        delete(table, line), metadata.default_spec, metadata.current_schema
    )
    listed = line.model_copy(update={"files": (json.loads(json.dumps(document)),)})
    checker = Checker(CheckBasis.of("frazil", metadata), metadata.current_schema)
    with pytest.raises(InvalidRequestError, match="adds data files only"):
        checker.check(read_request(seal_request(listed).content))


def test_vectors_of_one_puffin_file_are_good_and_each_is_alone() -> None:
    table = build_table(3)
    line = line_of(table)
    first, second = vector(table, line), vector(table, line, 1)
    assert outcome(table, line, manifest_of(table, first, second)) is None
    assert outcome(table, line, manifest_of(table, first), manifest_of(table, second)) is None
    again = replace(second, referenced_data_file=first.referenced_data_file)
    assert outcome(table, line, manifest_of(table, first, again)) == Reason.VECTOR_REPEATED
    on_top = replace(second, content_offset=first.content_offset)
    assert outcome(table, line, manifest_of(table, first, on_top)) == Reason.VECTOR_REPEATED


def test_other_delete_files_have_a_name_each() -> None:
    table = build_table(2)
    line = line_of(table)
    file = delete(table, line)
    assert outcome(table, line, manifest_of(table, file, file)) == Reason.PATH_REPEATED
    data = hand_over(table, entry(file_of(table, line)))
    assert outcome(table, line, data, manifest_of(table, file)) == Reason.PATH_REPEATED


def test_inline_delete_files_are_checked_as_those_of_manifests() -> None:
    table = build_table(3)
    line = line_of(table)
    metadata = table.metadata

    def listed(*files: DataFile) -> Reason | None:
        documents = tuple(
            print_content_file(file, metadata.default_spec, metadata.current_schema)
            for file in files
        )
        sealed = read_request(seal_request(line.model_copy(update={"files": documents})).content)
        checker = Checker(CheckBasis.of("frazil", metadata), metadata.current_schema)
        try:
            checker.check(sealed)
        except InvalidRequestError as error:
            return _reason(error)
        return None

    data = file_of(table, line)
    assert listed(data, vector(table, line), vector(table, line, 1)) is None
    assert listed(delete(table, line, file_path=f"{data.file_path[:-8]}-d.parquet")) is None
    assert listed(delete(table, line, equality_ids=(99,))) == Reason.SCHEMA_MISMATCH
    assert listed(positions(table, line)) == Reason.MANIFEST_CONTENT_MISMATCH


# --- Files and the operation ---------------------------------------------------------------------


def test_a_file_is_not_added_and_removed_at_once() -> None:
    table = build_table(2)
    line = line_of(table, "overwrite", removed_data_files=["x"])
    file = file_of(table, line)
    both = line.model_copy(update={"needs": Needs(removed_data_files=(file.file_path,))})
    assert outcome(table, both, hand_over(table, entry(file))) == Reason.PATH_REPEATED
    assert outcome(table, line, hand_over(table, entry(file))) is None


def test_no_deletes_are_added_to_a_file_that_is_removed() -> None:
    table = build_table(3)
    line = line_of(table)
    file = vector(table, line)
    needs = Needs(removed_data_files=(str(file.referenced_data_file),))
    both = line.model_copy(update={"needs": needs})
    found = outcome(table, both, manifest_of(table, file))
    assert found == Reason.MANIFEST_CONTENT_MISMATCH
    assert outcome(table, line, manifest_of(table, file)) is None


def test_partitions_are_replaced_under_one_spec() -> None:
    table = build_flights(fields=(*BY_DAY,))
    one = build_table(2)
    specs = (one.metadata.default_spec, replace(table.metadata.default_spec, spec_id=1))
    both = replace(one, metadata=replace(one.metadata, partition_specs=specs))
    line = line_of(both, "replace-partitions")
    first = hand_over(both, entry(file_of(both, line)))
    context = ManifestContext(2, both.metadata.current_schema, specs[1])
    path = f"{both.metadata.location}/data/1-{line.attempt}.parquet"
    second = hand_over(
        both, entry(file_of(both, line, partition=(3,), file_path=path)), context=context
    )
    assert outcome(both, line, first) is None
    assert outcome(both, line, first, second) == Reason.SPEC_MISMATCH


def test_groups_hold_each_added_file_and_no_other() -> None:
    table = build_table(2)
    base = {"base_snapshot_id": 1, "removed_data_files": ["a"]}
    line = line_of(table, "rewrite-files", **base)
    file = file_of(table, line)
    good = hand_over(table, entry(file))
    for added, reason in (
        ([file.file_path], None),
        ([], Reason.REQUEST_MALFORMED),
        ([file.file_path, "x"], Reason.REQUEST_MALFORMED),
    ):
        group = {"removed-data-files": ["a"], "added-data-files": added}
        needs = Needs.model_validate(
            {"base-snapshot-id": 1, "removed-data-files": ["a"], "groups": [group]}
        )
        assert outcome(table, line.model_copy(update={"needs": needs}), good) == reason
