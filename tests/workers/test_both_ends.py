"""The committer takes every request that Frazil's own writers publish, at the ends of each type.

A writer refuses what cannot be committed before anything is published, naming column and value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from uuid import UUID, uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from committer.errors import PublishError
from committer.iceberg.entry.data_file import DataFile
from committer.iceberg.metadata.new_table import new_table_metadata
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.schema.partition_spec import PartitionField, PartitionSpec
from committer.iceberg.schema.sort_order import UNSORTED
from committer.iceberg.values.transforms import VOID, Transform, TruncateTransform
from committer.iceberg.values.types import (
    BinaryType,
    BooleanType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    StringType,
    TimeType,
    UUIDType,
)
from committer.plan.batch.request_check import CheckBasis, CheckedRequest, Checker
from committer.request.attempt import attempt_of
from committer.request.commit_request import CommitRequest, Fingerprint, Producer
from committer.request.request_format import inline_references, read_request, seal_request
from committer.request.table_identifier import TableIdentifier
from committer.request.transaction import TableName
from committer.storage.disk.local import LocalStorage
from tests.support.iceberg.expression_builders import VALUES, rows_of
from tests.support.iceberg.extremes import EXTREMES, TRANSFORMS
from tests.support.workers.tables import optional, schema
from tests.support.workers.write_target import Target
from workers.adoption.adopter import adopt_files, find_files
from workers.adoption.adoption_target import AdoptionTarget
from workers.arrow.arrow_schema import arrow_schema
from workers.arrow.arrow_values import to_array
from workers.files.file_writer import FileNames, PartitionedWriter
from workers.requests.written_epoch import WrittenEpoch, encode_manifests

NONCE, TABLE_UUID = UUID(int=7), UUID(int=9)
PRODUCER = Producer(id="p")
ATTEMPT = attempt_of(TABLE_UUID, "main", PRODUCER.id, 0, NONCE)
LONG = "x" * 300
MORE: Mapping[IcebergType, Sequence[object]] = {
    StringType(): [LONG, "\u00e9" * 60, "\U0010ffff" * 80, "/" * 100, "..", ".", "a\nb", "%2e%2e"],
    BinaryType(): [b"\xff" * 300, bytes(400)],
    DecimalType(4, 2): [Decimal("-99.60")],
    FloatType(): [float("nan"), float("inf"), float("-inf"), -0.0, 3.4028234663852886e38],
    DoubleType(): [
        float("nan"),
        float("inf"),
        float("-inf"),
        -0.0,
        5e-324,
        -1.7976931348623157e308,
    ],
    TimeType(): [0, 86_399_999_999],
    UUIDType(): [UUID(int=0), UUID(int=2**128 - 1)],
    BooleanType(): [False, True],
}
KINDS = [*dict.fromkeys([*EXTREMES, *MORE])]
CASES = [
    (kind, transform)
    for kind in KINDS
    for transform in [*TRANSFORMS, VOID]
    if transform.can_transform(kind)
]


def table_of(folder: Path, kind: IcebergType, *fields: PartitionField) -> TableMetadata:
    return new_table_metadata(
        table_uuid=TABLE_UUID,
        location=f"file:{folder}/db/t",
        schema=schema(optional(1, "c", kind)),
        partition_spec=PartitionSpec(0, fields),
        sort_order=UNSORTED,
        properties={},
        format_version=3,
        now_ms=1_700_000_000_000,
    )


def batch_of(metadata: TableMetadata, values: Sequence[object]) -> pa.RecordBatch:
    (column,) = metadata.current_schema.fields
    array = to_array(values, column.field_type)
    return pa.RecordBatch.from_arrays([array], schema=arrow_schema(metadata.current_schema))


def written(metadata: TableMetadata, values: Sequence[object]) -> list[DataFile]:
    """Write rows as a task of the sink does."""
    target = Target(
        metadata.location, metadata.current_schema, metadata.default_spec, metadata.properties
    )
    names = FileNames(0, 1, str(ATTEMPT), "5a17")
    with PartitionedWriter(target, arrow_schema(metadata.current_schema), names) as writer:
        writer.write(batch_of(metadata, values))
        return writer.close()


def checked(
    metadata: TableMetadata, files: Sequence[DataFile], *, adopts: bool = False
) -> CheckedRequest:
    """Publish files as a client does, and check the request as the committer does."""
    epoch = WrittenEpoch(
        identifier=TableIdentifier(("db",), "t"),
        table_uuid=TABLE_UUID,
        schema_id=metadata.current_schema_id,
        producer=PRODUCER,
        epoch=0,
        nonce=NONCE,
        fingerprint=Fingerprint(kind="batch-id", value="0"),
        files=files,
        adopt_existing=adopts,
    )
    manifests = encode_manifests(metadata, epoch)
    request = CommitRequest(
        catalog="c",
        table=TableName(namespace=("db",), name="t"),
        table_uuid=epoch.table_uuid,
        producer=epoch.producer,
        epoch=epoch.epoch,
        nonce=epoch.nonce,
        attempt=epoch.attempt,
        fingerprint=epoch.fingerprint,
        published_at_ms=0,
        adopt_existing=adopts,
        manifests=inline_references(manifests),
    )
    found = Checker(CheckBasis.of("c", metadata), metadata.current_schema).check(
        read_request(seal_request(request, manifests).content)
    )
    assert isinstance(found, CheckedRequest)
    return found


def land_or_refuse(
    folder: Path, kind: IcebergType, transform: Transform, values: Sequence[object]
) -> None:
    """Require that the committer takes what the writer writes, or that the writer refuses it."""
    try:
        land(folder, kind, transform, values)
    except PublishError as error:
        assert isinstance(kind, DecimalType) and isinstance(transform, TruncateTransform)
        assert "column c" in str(error) and "partition field part" in str(error)
        assert not any(path.is_file() for path in folder.rglob("*"))


def land(folder: Path, kind: IcebergType, transform: Transform, values: Sequence[object]) -> None:
    """Require that the committer takes what the writer writes. Errors: `PublishError`."""
    metadata = table_of(folder, kind, PartitionField((1,), 1000, "part", transform))
    found = checked(metadata, written(metadata, values))
    partitions = {repr(transform.apply(kind, value)) for value in values}
    [manifest] = found.manifests
    assert {repr(file.partition[0]) for file in manifest.files()} == partitions


@pytest.mark.parametrize(("kind", "transform"), CASES, ids=str)
def test_the_committer_takes_what_the_sink_writes_of_each_extreme(
    tmp_path: Path, kind: IcebergType, transform: Transform
) -> None:
    values = (None, *EXTREMES.get(kind, ()), *MORE.get(kind, ()))
    try:
        land(tmp_path / "together", kind, transform, values)
    except PublishError:
        assert isinstance(kind, DecimalType) and isinstance(transform, TruncateTransform)
        for number, value in enumerate(values):
            land_or_refuse(tmp_path / str(number), kind, transform, [value])


@pytest.mark.simulation
@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_the_committer_takes_what_the_sink_writes_of_any_rows(
    tmp_path: Path, data: st.DataObject
) -> None:
    kind, transform = data.draw(st.sampled_from(CASES))
    extremes = st.sampled_from((None, *EXTREMES.get(kind, ()), *MORE.get(kind, ())))
    drawn = st.one_of(extremes, rows_of(kind)) if kind in VALUES else extremes
    values = data.draw(st.lists(drawn, min_size=1, max_size=6))
    folder = tmp_path / uuid4().hex
    land_or_refuse(folder, kind, transform, values)


@pytest.mark.parametrize(("kind", "transform"), CASES, ids=str)
async def test_the_committer_takes_what_add_files_finds_to_fit(
    tmp_path: Path, kind: IcebergType, transform: Transform
) -> None:
    metadata = table_of(tmp_path, kind, PartitionField((1,), 1000, "part", transform))
    folder = tmp_path / "db" / "t" / "data"
    folder.mkdir(parents=True)
    values = (None, *EXTREMES.get(kind, ()), *MORE.get(kind, ()))
    for number, value in enumerate(values):
        batch = batch_of(metadata, [value])
        pq.write_table(pa.Table.from_batches([batch]), folder / f"{number}.parquet")
    storage = LocalStorage()
    found = await find_files(storage, metadata.location)
    target = AdoptionTarget.of(metadata)
    adoption = await adopt_files(storage, found, target)
    files = [
        replace(one.file, file_path=one.file.file_path.replace("file://", "file:"))
        for one in adoption.adopted
    ]
    for file in files:
        checked(metadata, [file], adopts=True)
    for refused in adoption.refused:
        assert isinstance(kind, DecimalType | FloatType | DoubleType | StringType | BinaryType)
        assert "partition field part" in refused.problems[0]
