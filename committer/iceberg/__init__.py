"""The Apache Iceberg table format as values and bytes: pure, no I/O, no clock, no chance.

The names below are the public face: `from committer.iceberg import TableMetadata, Schema`. Each is
imported from its module when it is first asked for, so that who needs one pays for one.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from committer.iceberg.content_file_json import parse_content_file as parse_content_file
    from committer.iceberg.content_file_json import print_content_file as print_content_file
    from committer.iceberg.data_file import DataFile as DataFile
    from committer.iceberg.data_file import DataFileContent as DataFileContent
    from committer.iceberg.data_file import ManifestContent as ManifestContent
    from committer.iceberg.data_file import ManifestEntry as ManifestEntry
    from committer.iceberg.data_file import ManifestEntryStatus as ManifestEntryStatus
    from committer.iceberg.deletes.delete_index import DeleteIndex as DeleteIndex
    from committer.iceberg.deletes.deletion_vector import DeletionVector as DeletionVector
    from committer.iceberg.deletes.deletion_vector import (
        decode_deletion_vector as decode_deletion_vector,
    )
    from committer.iceberg.deletes.deletion_vector import (
        encode_deletion_vector as encode_deletion_vector,
    )
    from committer.iceberg.deletes.deletion_vector_file import (
        encode_deletion_vectors as encode_deletion_vectors,
    )
    from committer.iceberg.manifest import DecodedManifest as DecodedManifest
    from committer.iceberg.manifest import EncodedManifest as EncodedManifest
    from committer.iceberg.manifest import ManifestContext as ManifestContext
    from committer.iceberg.manifest import decode_manifest as decode_manifest
    from committer.iceberg.manifest import encode_manifest as encode_manifest
    from committer.iceberg.manifest_list import DecodedManifestList as DecodedManifestList
    from committer.iceberg.manifest_list import ManifestFile as ManifestFile
    from committer.iceberg.manifest_list import PartitionFieldSummary as PartitionFieldSummary
    from committer.iceberg.manifest_list import decode_manifest_list as decode_manifest_list
    from committer.iceberg.manifest_list import encode_manifest_list as encode_manifest_list
    from committer.iceberg.metadata_model import TableMetadata as TableMetadata
    from committer.iceberg.metadata_update import AddEncryptionKey as AddEncryptionKey
    from committer.iceberg.metadata_update import AddPartitionSpec as AddPartitionSpec
    from committer.iceberg.metadata_update import AddSchema as AddSchema
    from committer.iceberg.metadata_update import AddSnapshot as AddSnapshot
    from committer.iceberg.metadata_update import AddSortOrder as AddSortOrder
    from committer.iceberg.metadata_update import AssignUUID as AssignUUID
    from committer.iceberg.metadata_update import RemoveEncryptionKey as RemoveEncryptionKey
    from committer.iceberg.metadata_update import RemovePartitionSpecs as RemovePartitionSpecs
    from committer.iceberg.metadata_update import (
        RemovePartitionStatistics as RemovePartitionStatistics,
    )
    from committer.iceberg.metadata_update import RemoveProperties as RemoveProperties
    from committer.iceberg.metadata_update import RemoveSchemas as RemoveSchemas
    from committer.iceberg.metadata_update import RemoveSnapshotRef as RemoveSnapshotRef
    from committer.iceberg.metadata_update import RemoveSnapshots as RemoveSnapshots
    from committer.iceberg.metadata_update import RemoveStatistics as RemoveStatistics
    from committer.iceberg.metadata_update import SetCurrentSchema as SetCurrentSchema
    from committer.iceberg.metadata_update import SetDefaultPartitionSpec as SetDefaultPartitionSpec
    from committer.iceberg.metadata_update import SetDefaultSortOrder as SetDefaultSortOrder
    from committer.iceberg.metadata_update import SetLocation as SetLocation
    from committer.iceberg.metadata_update import SetPartitionStatistics as SetPartitionStatistics
    from committer.iceberg.metadata_update import SetProperties as SetProperties
    from committer.iceberg.metadata_update import SetSnapshotRef as SetSnapshotRef
    from committer.iceberg.metadata_update import SetStatistics as SetStatistics
    from committer.iceberg.metadata_update import Update as Update
    from committer.iceberg.metadata_update import UpgradeFormatVersion as UpgradeFormatVersion
    from committer.iceberg.metadata_update import apply_updates as apply_updates
    from committer.iceberg.metadata_update_json import parse_update as parse_update
    from committer.iceberg.metadata_update_json import print_update as print_update
    from committer.iceberg.new_table import new_table_metadata as new_table_metadata
    from committer.iceberg.partition_spec import UNPARTITIONED as UNPARTITIONED
    from committer.iceberg.partition_spec import PartitionField as PartitionField
    from committer.iceberg.partition_spec import PartitionSpec as PartitionSpec
    from committer.iceberg.partition_spec import partition_path as partition_path
    from committer.iceberg.partition_spec import partition_type as partition_type
    from committer.iceberg.puffin import Blob as Blob
    from committer.iceberg.puffin import BlobMetadata as BlobMetadata
    from committer.iceberg.puffin import PuffinFooter as PuffinFooter
    from committer.iceberg.puffin import decode_blob as decode_blob
    from committer.iceberg.puffin import decode_puffin_footer as decode_puffin_footer
    from committer.iceberg.puffin import encode_puffin as encode_puffin
    from committer.iceberg.requirement import AssertCreate as AssertCreate
    from committer.iceberg.requirement import AssertCurrentSchemaId as AssertCurrentSchemaId
    from committer.iceberg.requirement import AssertDefaultSortOrderId as AssertDefaultSortOrderId
    from committer.iceberg.requirement import AssertDefaultSpecId as AssertDefaultSpecId
    from committer.iceberg.requirement import AssertLastAssignedFieldId as AssertLastAssignedFieldId
    from committer.iceberg.requirement import (
        AssertLastAssignedPartitionId as AssertLastAssignedPartitionId,
    )
    from committer.iceberg.requirement import AssertRefSnapshotId as AssertRefSnapshotId
    from committer.iceberg.requirement import AssertTableUUID as AssertTableUUID
    from committer.iceberg.requirement import Requirement as Requirement
    from committer.iceberg.requirement import failed_requirement as failed_requirement
    from committer.iceberg.requirement import parse_requirement as parse_requirement
    from committer.iceberg.requirement import print_requirement as print_requirement
    from committer.iceberg.schema import Schema as Schema
    from committer.iceberg.schema import parse_schema as parse_schema
    from committer.iceberg.schema import print_schema as print_schema
    from committer.iceberg.single_value import decode_value as decode_value
    from committer.iceberg.single_value import encode_value as encode_value
    from committer.iceberg.single_value import parse_json_value as parse_json_value
    from committer.iceberg.single_value import print_json_value as print_json_value
    from committer.iceberg.snapshot import MetadataLogEntry as MetadataLogEntry
    from committer.iceberg.snapshot import Snapshot as Snapshot
    from committer.iceberg.snapshot import SnapshotLogEntry as SnapshotLogEntry
    from committer.iceberg.snapshot import SnapshotRef as SnapshotRef
    from committer.iceberg.sort_order import UNSORTED as UNSORTED
    from committer.iceberg.sort_order import SortField as SortField
    from committer.iceberg.sort_order import SortOrder as SortOrder
    from committer.iceberg.table_metadata import parse_table_metadata as parse_table_metadata
    from committer.iceberg.table_metadata import print_table_metadata as print_table_metadata
    from committer.iceberg.table_statistics import EncryptedKey as EncryptedKey
    from committer.iceberg.table_statistics import StatisticsFile as StatisticsFile
    from committer.iceberg.transforms import BucketTransform as BucketTransform
    from committer.iceberg.transforms import IdentityTransform as IdentityTransform
    from committer.iceberg.transforms import TimeTransform as TimeTransform
    from committer.iceberg.transforms import Transform as Transform
    from committer.iceberg.transforms import TruncateTransform as TruncateTransform
    from committer.iceberg.transforms import UnknownTransform as UnknownTransform
    from committer.iceberg.transforms import VoidTransform as VoidTransform
    from committer.iceberg.transforms import parse_transform as parse_transform
    from committer.iceberg.types import BinaryType as BinaryType
    from committer.iceberg.types import BooleanType as BooleanType
    from committer.iceberg.types import DateType as DateType
    from committer.iceberg.types import DecimalType as DecimalType
    from committer.iceberg.types import DoubleType as DoubleType
    from committer.iceberg.types import FixedType as FixedType
    from committer.iceberg.types import FloatType as FloatType
    from committer.iceberg.types import GeographyType as GeographyType
    from committer.iceberg.types import GeometryType as GeometryType
    from committer.iceberg.types import IcebergType as IcebergType
    from committer.iceberg.types import IntegerType as IntegerType
    from committer.iceberg.types import ListType as ListType
    from committer.iceberg.types import LongType as LongType
    from committer.iceberg.types import MapType as MapType
    from committer.iceberg.types import NestedField as NestedField
    from committer.iceberg.types import StringType as StringType
    from committer.iceberg.types import StructType as StructType
    from committer.iceberg.types import TimestampNanoType as TimestampNanoType
    from committer.iceberg.types import TimestampType as TimestampType
    from committer.iceberg.types import TimestamptzNanoType as TimestamptzNanoType
    from committer.iceberg.types import TimestamptzType as TimestamptzType
    from committer.iceberg.types import TimeType as TimeType
    from committer.iceberg.types import UnknownType as UnknownType
    from committer.iceberg.types import UUIDType as UUIDType
    from committer.iceberg.types import VariantType as VariantType

_NAMES: Mapping[str, tuple[str, ...]] = {
    "content_file_json": (
        "parse_content_file",
        "print_content_file",
    ),
    "data_file": (
        "DataFile",
        "DataFileContent",
        "ManifestContent",
        "ManifestEntry",
        "ManifestEntryStatus",
    ),
    "deletes.delete_index": ("DeleteIndex",),
    "deletes.deletion_vector": (
        "DeletionVector",
        "decode_deletion_vector",
        "encode_deletion_vector",
    ),
    "deletes.deletion_vector_file": ("encode_deletion_vectors",),
    "manifest": (
        "DecodedManifest",
        "EncodedManifest",
        "ManifestContext",
        "decode_manifest",
        "encode_manifest",
    ),
    "manifest_list": (
        "DecodedManifestList",
        "ManifestFile",
        "PartitionFieldSummary",
        "decode_manifest_list",
        "encode_manifest_list",
    ),
    "metadata_model": ("TableMetadata",),
    "metadata_update": (
        "AddEncryptionKey",
        "AddPartitionSpec",
        "AddSchema",
        "AddSnapshot",
        "AddSortOrder",
        "AssignUUID",
        "RemoveEncryptionKey",
        "RemovePartitionSpecs",
        "RemovePartitionStatistics",
        "RemoveProperties",
        "RemoveSchemas",
        "RemoveSnapshotRef",
        "RemoveSnapshots",
        "RemoveStatistics",
        "SetCurrentSchema",
        "SetDefaultPartitionSpec",
        "SetDefaultSortOrder",
        "SetLocation",
        "SetPartitionStatistics",
        "SetProperties",
        "SetSnapshotRef",
        "SetStatistics",
        "Update",
        "UpgradeFormatVersion",
        "apply_updates",
    ),
    "metadata_update_json": (
        "parse_update",
        "print_update",
    ),
    "new_table": ("new_table_metadata",),
    "partition_spec": (
        "UNPARTITIONED",
        "PartitionField",
        "PartitionSpec",
        "partition_path",
        "partition_type",
    ),
    "puffin": (
        "Blob",
        "BlobMetadata",
        "PuffinFooter",
        "decode_blob",
        "decode_puffin_footer",
        "encode_puffin",
    ),
    "requirement": (
        "AssertCreate",
        "AssertCurrentSchemaId",
        "AssertDefaultSortOrderId",
        "AssertDefaultSpecId",
        "AssertLastAssignedFieldId",
        "AssertLastAssignedPartitionId",
        "AssertRefSnapshotId",
        "AssertTableUUID",
        "Requirement",
        "failed_requirement",
        "parse_requirement",
        "print_requirement",
    ),
    "schema": (
        "Schema",
        "parse_schema",
        "print_schema",
    ),
    "single_value": (
        "decode_value",
        "encode_value",
        "parse_json_value",
        "print_json_value",
    ),
    "snapshot": (
        "MetadataLogEntry",
        "Snapshot",
        "SnapshotLogEntry",
        "SnapshotRef",
    ),
    "sort_order": (
        "UNSORTED",
        "SortField",
        "SortOrder",
    ),
    "table_metadata": (
        "parse_table_metadata",
        "print_table_metadata",
    ),
    "table_statistics": (
        "EncryptedKey",
        "StatisticsFile",
    ),
    "transforms": (
        "BucketTransform",
        "IdentityTransform",
        "TimeTransform",
        "Transform",
        "TruncateTransform",
        "UnknownTransform",
        "VoidTransform",
        "parse_transform",
    ),
    "types": (
        "BinaryType",
        "BooleanType",
        "DateType",
        "DecimalType",
        "DoubleType",
        "FixedType",
        "FloatType",
        "GeographyType",
        "GeometryType",
        "IcebergType",
        "IntegerType",
        "ListType",
        "LongType",
        "MapType",
        "NestedField",
        "StringType",
        "StructType",
        "TimeType",
        "TimestampNanoType",
        "TimestampType",
        "TimestamptzNanoType",
        "TimestamptzType",
        "UUIDType",
        "UnknownType",
        "VariantType",
    ),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted(_MODULES)


if not TYPE_CHECKING:
    # To a type checker every other name is a mistake.
    def __getattr__(name: str) -> object:
        module = _MODULES.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
