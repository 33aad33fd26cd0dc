"""The check before a batch: every reason code, by a request that is wrong in just that way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from io import BytesIO

import fastavro
import pytest

from committer.errors import InvalidRequestError
from committer.iceberg.manifest.manifest import decode_manifest
from committer.iceberg.metadata.location_properties import AllowedLocations
from committer.iceberg.metadata.snapshot import Snapshot, SnapshotRef
from committer.iceberg.schema.partition_spec import PartitionField
from committer.iceberg.schema.schema import Schema
from committer.iceberg.updates.metadata_update import (
    AddSchema,
    AddSnapshot,
    SetCurrentSchema,
    SetProperties,
    SetSnapshotRef,
    UpgradeFormatVersion,
)
from committer.iceberg.values.transforms import parse_transform
from committer.iceberg.values.types import DecimalType, LongType, NestedField
from committer.ledger_entry import property_key
from committer.plan.batch.request_check import CheckBasis, CheckedRequest, Checker, NeedsManifests
from committer.ports.pointer_swap import LoadedTable
from committer.reason import Reason
from committer.request.request_format import EncodedRequest, read_request, seal_request
from tests.corpus.repeats import REPEATS
from tests.support.builders.alter_requests import build_alter
from tests.support.builders.bad_requests import (
    CHECKED,
    BadRequest,
    Make,
    entry,
    file_of,
    good,
    hand_over,
    inline_files,
    naming,
)
from tests.support.builders.flights import FIELDS, build_codes, build_flights, changed
from tests.support.builders.request_builders import (
    build_file,
    build_line,
    build_request,
    seal,
    sealed_manifests,
)
from tests.support.builders.transactions import build_group
from tests.support.iceberg.content_file_printer import print_content_file


def checker_of(table: LoadedTable) -> Checker:
    return Checker(CheckBasis.of("frazil", table.metadata), table.metadata.current_schema)


def check(table: LoadedTable, sealed: EncodedRequest) -> CheckedRequest | NeedsManifests:
    return checker_of(table).check(sealed)


@pytest.mark.parametrize("bad", CHECKED, ids=lambda bad: bad.name)
def test_a_request_that_is_wrong_in_one_way_gets_the_reason_for_it(bad: BadRequest) -> None:
    table = build_flights()
    sealed = bad.make(table, "query-1")
    # Its own bytes are right: what is wrong is what it asks for.
    sealed = read_request(sealed.content, key=sealed.request.inbox_key)
    with pytest.raises(InvalidRequestError) as caught:
        check(table, sealed)
    assert caught.value.reason == bad.reason
    assert len(str(caught.value)) > 15


def test_a_row_id_is_refused_in_version_3() -> None:
    table = build_flights(format_version=3)
    line = build_line(table)
    manifest = hand_over(table, entry(file_of(table, line)))
    numbered = replace(manifest, content=_with_row_ids(manifest.content))
    with pytest.raises(InvalidRequestError) as caught:
        check(table, seal(line, [numbered]))
    assert caught.value.reason == Reason.ROW_ID_SET


def _with_row_ids(content: bytes) -> bytes:
    """Rewrite with another library: ours leaves the row ids of additions to be inherited."""
    reader, out = fastavro.reader(BytesIO(content)), BytesIO()
    records = list(reader)
    for record in records:
        record["data_file"]["first_row_id"] = 5
    metadata = {
        name: value for name, value in reader.metadata.items() if not name.startswith("avro.")
    }
    fastavro.writer(out, reader.writer_schema, records, codec="deflate", metadata=metadata)
    return out.getvalue()


@pytest.mark.parametrize("make", [good, inline_files], ids=["manifest", "inline"])
def test_nothing_is_committed_under_a_transform_that_is_not_known(make: Make) -> None:
    field = PartitionField((2,), 1000, "carrier", parse_transform("zorder"))
    table = build_flights(fields=(field,))
    with pytest.raises(InvalidRequestError, match="zorder") as caught:
        check(table, make(table, "query-1"))
    assert caught.value.reason == Reason.UNSUPPORTED


def with_partition(table: LoadedTable, value: object) -> EncodedRequest:
    line = build_line(table)
    file = build_file(table.metadata, line.attempt, partition=(value,))
    return seal(line, [hand_over(table, entry(file))])


def inline_with_partition(table: LoadedTable, value: object) -> EncodedRequest:
    line = build_line(table)
    file = build_file(table.metadata, line.attempt, partition=(value,))
    metadata = table.metadata
    document = print_content_file(file, metadata.default_spec, metadata.current_schema)
    return seal_request(line.model_copy(update={"files": (document,)}))


@pytest.mark.parametrize("make", [with_partition, inline_with_partition])
def test_nothing_is_committed_under_a_spec_of_fixed_values(
    make: Callable[[LoadedTable, object], EncodedRequest],
) -> None:
    table = build_codes("identity")
    for value in (b"AA", None):
        with pytest.raises(
            InvalidRequestError, match="`carrier` is the identity of a fix"
        ) as found:
            check(table, make(table, value))
        assert found.value.reason == Reason.UNSUPPORTED


def test_nothing_is_committed_under_partition_fields_that_are_one_name_in_manifests() -> None:
    """Another writer may have made such a table: no reader reads its manifests."""
    table = build_flights()
    (carrier,) = table.metadata.default_spec.fields
    fields = (replace(carrier, name="1"), replace(carrier, name="_1", field_id=1001))
    spec = replace(table.metadata.default_spec, fields=fields)
    table = replace(table, metadata=replace(table.metadata, partition_specs=(spec,)))
    line = build_line(table)
    file = build_file(table.metadata, line.attempt, partition=("AA", "AA"))
    document = print_content_file(file, spec, table.metadata.current_schema)
    with pytest.raises(InvalidRequestError, match="partition fields `1` and `_1`") as found:
        check(table, seal_request(line.model_copy(update={"files": (document,)})))
    assert found.value.reason == Reason.UNSUPPORTED


@pytest.mark.parametrize("make", [with_partition, inline_with_partition])
def test_a_decimal_partition_has_no_more_digits_than_its_type(
    make: Callable[[LoadedTable, object], EncodedRequest],
) -> None:
    price = NestedField(2, "price", DecimalType(9, 2), required=False)
    schema = Schema((FIELDS[0], price))
    by_price = PartitionField((2,), 1000, "price", parse_transform("identity"))
    table = build_flights(fields=(by_price,), schema=schema)
    for value in ("0.00", "-9999999.99", "9999999.99"):
        assert isinstance(check(table, make(table, Decimal(value))), CheckedRequest)
    # As many bytes hold them.
    for value in ("10000000.00", "-21474836.47"):
        with pytest.raises(InvalidRequestError, match=r"digits|decimal") as found:
            check(table, make(table, Decimal(value)))
        assert found.value.reason in (Reason.PARTITION_TYPE_MISMATCH, Reason.REQUEST_MALFORMED)


@pytest.mark.parametrize("make", [with_partition, inline_with_partition])
def test_a_void_field_has_no_values(
    make: Callable[[LoadedTable, object], EncodedRequest],
) -> None:
    table = build_codes("void")
    assert isinstance(check(table, make(table, None)), CheckedRequest)
    with pytest.raises(InvalidRequestError, match="void") as found:
        check(table, make(table, b"AA"))
    assert found.value.reason == Reason.PARTITION_TYPE_MISMATCH


@pytest.mark.parametrize("order_id", [None, 0, 7])
def test_files_in_the_line_that_name_no_sort_order_are_unsorted(order_id: int | None) -> None:
    table = build_flights()
    line = build_line(table)
    file = replace(file_of(table, line), sort_order_id=order_id)
    metadata = table.metadata
    document = print_content_file(file, metadata.default_spec, metadata.current_schema)
    checked = check(table, seal_request(line.model_copy(update={"files": (document,)})))
    assert isinstance(checked, CheckedRequest)
    (manifest,) = checked.manifests
    (entry_,) = decode_manifest(bytes(manifest.part.content)).entries
    assert entry_.data_file.sort_order_id == (order_id or 0)


@pytest.mark.parametrize("branch", ["main", "audit"])
def test_a_producer_whose_ledger_entry_the_catalog_cannot_name_is_refused(branch: str) -> None:
    """Its property would be refused with each commit, and all that is in the batch with it."""
    table = build_flights()
    request = build_line(table, producer="query-1", branch=branch)
    key = property_key("query-1", branch)
    for chars_max in (None, len(key), len(key) - 1):
        basis = replace(
            CheckBasis.of("frazil", table.metadata, chars_max), branches=frozenset({branch})
        )
        checker = Checker(basis, table.metadata.current_schema)
        if chars_max is None or chars_max >= len(key):
            checker.check_target(request)
            continue
        with pytest.raises(InvalidRequestError, match=key) as caught:
            checker.check_target(request)
        assert caught.value.reason == Reason.PRODUCER_ID_TOO_LONG


def test_every_reason_that_a_check_can_give_has_its_bad_request() -> None:
    elsewhere = {
        # read_request, the ledger, the catalog, or reading a named manifest give these
        Reason.REQUEST_TRUNCATED,
        Reason.VECTOR_REPEATED,  # test_delete_files.py
        Reason.JSON_KEY_REPEATED,
        Reason.REQUEST_VERSION_UNKNOWN,
        Reason.REQUEST_KEY_MISMATCH,
        Reason.REQUEST_TOO_LARGE,
        Reason.REQUEST_NOT_A_FILE,
        Reason.ATTEMPT_MISMATCH,
        Reason.HASH_MISMATCH,
        Reason.SIGNATURE_MISSING,
        Reason.SIGNATURE_INVALID,
        Reason.SIGNATURE_KEY_UNKNOWN,
        Reason.SIGNATURE_KEY_NOT_ALLOWED,
        Reason.SIGNATURE_EXPIRED,
        Reason.UNSIGNED_OPERATION,
        Reason.LOCATION_NOT_ALLOWED,  # below
        Reason.DATA_FILE_MISSING,
        Reason.TABLE_UNKNOWN,
        Reason.PRODUCER_ID_TOO_LONG,
        Reason.MANIFEST_MISSING,
        Reason.ROW_ID_SET,
        Reason.EPOCH_CONTENT_DIFFERS,
        Reason.EPOCH_LANDED_UNPROVEN,
        Reason.PRODUCER_FROZEN,
        Reason.CONFLICT,
        Reason.TRANSACTION_INCOMPLETE,
        Reason.COMMIT_REJECTED,
        Reason.PLAN_FAILED,
    }
    assert {bad.reason for bad in CHECKED} | elsewhere == set(Reason)


def test_a_change_names_no_folder_in_which_no_table_may_be() -> None:
    table = build_flights()
    outside, within = "memory://elsewhere", f"{table.metadata.location}/files"
    for folders, location, is_allowed in (
        ((), within, True),
        ((), outside, False),
        ((outside,), f"{outside}/files", True),
    ):
        updates = {"owner": "me", "write.data.path": location}
        sealed = build_alter(table, {"action": "set-properties", "updates": updates})
        basis = CheckBasis.of("frazil", table.metadata, allowed=AllowedLocations(folders))
        checker = Checker(basis, table.metadata.current_schema)
        if is_allowed:
            assert isinstance(checker.check(sealed), CheckedRequest)
            continue
        with pytest.raises(
            InvalidRequestError, match=r"write\.data\.path=memory://elsewhere"
        ) as found:
            checker.check(sealed)
        assert found.value.reason == Reason.LOCATION_NOT_ALLOWED


@pytest.mark.parametrize("format_version", [1, 2, 3])
def test_a_right_request_passes_with_counts_of_its_own_entries(format_version: int) -> None:
    table = build_flights(format_version=format_version)
    checked = check(table, good(table, "query-1"))
    assert isinstance(checked, CheckedRequest)
    (manifest,) = checked.manifests
    assert (manifest.spec_id, checked.files_count) == (0, 1)
    assert manifest.walked.added_rows_count == 10
    assert manifest.walked.partitions == (("AA",),)


def test_files_listed_as_json_pass() -> None:
    table = build_flights()
    checked = check(table, inline_files(table, "query-1"))
    assert isinstance(checked, CheckedRequest)
    assert checked.manifests[0].walked.partitions == (("AA",),)


def test_a_manifest_of_an_older_format_version_passes_after_an_upgrade() -> None:
    table = build_flights(format_version=2)
    sealed = good(table, "query-1")
    upgraded = changed(table, UpgradeFormatVersion(3))
    assert isinstance(check(upgraded, sealed), CheckedRequest)


def test_a_manifest_with_an_older_schema_passes_whatever_its_id() -> None:
    table = build_flights()
    sealed = good(table, "query-1")
    wider = Schema((*FIELDS, NestedField(5, "tail", LongType(), required=False)), schema_id=1)
    assert isinstance(
        check(changed(table, AddSchema(wider), SetCurrentSchema(-1)), sealed), CheckedRequest
    )


def test_a_named_manifest_is_asked_for_with_its_length_and_then_checked() -> None:
    table = build_flights()
    sealed, manifest = naming(table, "query-1")
    path, content = manifest.location, manifest.content
    asked = check(table, sealed)
    assert asked == NeedsManifests({path: len(content)})
    checked = checker_of(table).check(sealed, {path: content})
    assert isinstance(checked, CheckedRequest)
    for other in (content[:-1], content + b"x", bytes(len(content))):
        with pytest.raises(InvalidRequestError) as caught:
            checker_of(table).check(sealed, {path: other})
        assert caught.value.reason == Reason.HASH_MISMATCH


@pytest.mark.parametrize("number", range(len(REPEATS)))
def test_a_file_stands_in_a_request_once(number: int) -> None:
    table = build_flights()
    sent = REPEATS[number].send(table, "bad")
    read = {one.location: one.content for one in sent.objects}
    with pytest.raises(InvalidRequestError) as caught:
        checker_of(table).check(read_request(sent.content, key=sent.key), read)
    assert caught.value.reason == Reason.PATH_REPEATED


def test_a_check_holds_while_nothing_changes_that_it_depends_on() -> None:
    table = build_flights()
    basis = CheckBasis.of("frazil", table.metadata)
    touched = changed(table, SetProperties({"owner": "me"}))
    assert CheckBasis.of("frazil", touched.metadata) == basis
    for update in (
        [SetProperties({"write.data.path": "memory://elsewhere"})],
        [UpgradeFormatVersion(3)],
        [AddSchema(Schema(FIELDS[:2], schema_id=1)), SetCurrentSchema(-1)],
    ):
        assert CheckBasis.of("frazil", changed(table, *update).metadata) != basis
    # `files` are read with the current schema, whichever of the known ones that is.
    known = changed(table, AddSchema(Schema(FIELDS[:2], schema_id=1)))
    current = changed(known, SetCurrentSchema(1))
    assert CheckBasis.of("frazil", known.metadata) != CheckBasis.of("frazil", current.metadata)


@pytest.mark.parametrize(
    ("tables_max", "expected"), [(0, "cannot change several"), (2, "at most 2")]
)
def test_transaction_that_the_catalog_cannot_apply_is_unsupported(
    tables_max: int, expected: str
) -> None:
    tables = [build_flights(f"db.t{n}") for n in range(3)]
    sealed = build_group(tables, partition=("AA",))[0]
    basis = CheckBasis.of("frazil", tables[0].metadata, transaction_tables_max=tables_max)
    with pytest.raises(InvalidRequestError, match=expected) as refused:
        Checker(basis, tables[0].metadata.current_schema).check(sealed)
    assert refused.value.reason == Reason.UNSUPPORTED
    able = CheckBasis.of("frazil", tables[0].metadata, transaction_tables_max=3)
    Checker(able, tables[0].metadata.current_schema).check(sealed)


def test_in_a_transaction_nothing_is_staged_picked_or_altered() -> None:
    """Its members are planned as changes of files alone."""
    tables = (build_flights(), build_flights("db.trains"))
    good = build_group(tables, partition=("AA",))[0]
    line = good.request.model_copy(update={"stage_only": True, "manifests": ()})
    metadata = tables[0].metadata
    basis = CheckBasis.of("frazil", metadata, transaction_tables_max=10)
    checker = Checker(basis, metadata.current_schema)
    with pytest.raises(InvalidRequestError) as caught:
        checker.check(seal(line, sealed_manifests(good)))
    assert caught.value.reason == Reason.UNSUPPORTED
    assert "in a `transaction`" in str(caught.value)


def test_a_branch_that_is_not_there_is_created_if_no_tag_has_its_name() -> None:
    table = build_flights()
    sealed = build_request(table, partition=("AA",), branch="audit", create_branch=True)
    assert isinstance(check(table, sealed), CheckedRequest)
    time_ms = table.metadata.last_updated_ms
    snapshot = Snapshot(
        snapshot_id=1, sequence_number=1, timestamp_ms=time_ms, manifest_list="memory://m"
    )
    tag = SetSnapshotRef("audit", SnapshotRef(1, type="tag"))
    tagged = changed(table, AddSnapshot(snapshot), tag)
    with pytest.raises(InvalidRequestError, match="a tag has this name") as caught:
        check(tagged, sealed)
    assert caught.value.reason == Reason.BRANCH_UNKNOWN
