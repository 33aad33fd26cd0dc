"""The Apache Iceberg table format as values and bytes: pure, no I/O, no clock, no chance.

The names below are the public face: `from committer.iceberg import TableMetadata, Schema`. Each is
imported from its module when it is first asked for, so that who needs one pays for one.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from committer.iceberg.changes.creation import table_of_updates as table_of_updates
    from committer.iceberg.changes.creation import updates_that_create as updates_that_create
    from committer.iceberg.changes.partition_field_ids import NEW_FIELD_ID as NEW_FIELD_ID
    from committer.iceberg.changes.requirements_of import (
        requirements_of_creation as requirements_of_creation,
    )
    from committer.iceberg.changes.requirements_of import (
        requirements_of_replacement as requirements_of_replacement,
    )
    from committer.iceberg.changes.requirements_of import (
        requirements_of_update as requirements_of_update,
    )
    from committer.iceberg.column_projection import project_columns as project_columns
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
    from committer.iceberg.evolution.partition_evolution import EvolvedSpec as EvolvedSpec
    from committer.iceberg.evolution.partition_evolution import (
        PartitionSpecUpdate as PartitionSpecUpdate,
    )
    from committer.iceberg.evolution.schema_evolution import EvolvedSchema as EvolvedSchema
    from committer.iceberg.evolution.schema_evolution import SchemaUpdate as SchemaUpdate
    from committer.iceberg.evolution.sort_order_evolution import SortOrderUpdate as SortOrderUpdate
    from committer.iceberg.expressions.binding import bind as bind
    from committer.iceberg.expressions.expression import ALWAYS_FALSE as ALWAYS_FALSE
    from committer.iceberg.expressions.expression import ALWAYS_TRUE as ALWAYS_TRUE
    from committer.iceberg.expressions.expression import AlwaysFalse as AlwaysFalse
    from committer.iceberg.expressions.expression import AlwaysTrue as AlwaysTrue
    from committer.iceberg.expressions.expression import And as And
    from committer.iceberg.expressions.expression import EqualTo as EqualTo
    from committer.iceberg.expressions.expression import Expression as Expression
    from committer.iceberg.expressions.expression import GreaterThan as GreaterThan
    from committer.iceberg.expressions.expression import GreaterThanOrEqual as GreaterThanOrEqual
    from committer.iceberg.expressions.expression import In as In
    from committer.iceberg.expressions.expression import IsNaN as IsNaN
    from committer.iceberg.expressions.expression import IsNull as IsNull
    from committer.iceberg.expressions.expression import LessThan as LessThan
    from committer.iceberg.expressions.expression import LessThanOrEqual as LessThanOrEqual
    from committer.iceberg.expressions.expression import Not as Not
    from committer.iceberg.expressions.expression import NotEqualTo as NotEqualTo
    from committer.iceberg.expressions.expression import NotIn as NotIn
    from committer.iceberg.expressions.expression import NotNaN as NotNaN
    from committer.iceberg.expressions.expression import NotNull as NotNull
    from committer.iceberg.expressions.expression import NotStartsWith as NotStartsWith
    from committer.iceberg.expressions.expression import Or as Or
    from committer.iceberg.expressions.expression import Reference as Reference
    from committer.iceberg.expressions.expression import StartsWith as StartsWith
    from committer.iceberg.expressions.expression_json import parse_expression as parse_expression
    from committer.iceberg.expressions.expression_json import print_expression as print_expression
    from committer.iceberg.expressions.manifest_evaluator import (
        manifest_evaluator as manifest_evaluator,
    )
    from committer.iceberg.expressions.metrics_evaluator import (
        inclusive_metrics_evaluator as inclusive_metrics_evaluator,
    )
    from committer.iceberg.expressions.metrics_evaluator import (
        strict_metrics_evaluator as strict_metrics_evaluator,
    )
    from committer.iceberg.expressions.projection import (
        inclusive_projection as inclusive_projection,
    )
    from committer.iceberg.expressions.projection import strict_projection as strict_projection
    from committer.iceberg.expressions.residual import residual_evaluator as residual_evaluator
    from committer.iceberg.expressions.row_evaluator import row_evaluator as row_evaluator
    from committer.iceberg.expressions.where_text import parse_where as parse_where
    from committer.iceberg.inspection.tables import TableSource as TableSource
    from committer.iceberg.inspection.tables import inspect_table as inspect_table
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
    from committer.iceberg.metadata_update import LAST_ADDED as LAST_ADDED
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
    from committer.iceberg.name_mapping import MappedField as MappedField
    from committer.iceberg.name_mapping import NameMapping as NameMapping
    from committer.iceberg.name_mapping import create_name_mapping as create_name_mapping
    from committer.iceberg.name_mapping import parse_name_mapping as parse_name_mapping
    from committer.iceberg.name_mapping import print_name_mapping as print_name_mapping
    from committer.iceberg.name_mapping import update_name_mapping as update_name_mapping
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
    from committer.iceberg.scan.plan_files import plan_files as plan_files
    from committer.iceberg.scan.scan_task import FileScanTask as FileScanTask
    from committer.iceberg.scan.time_travel import find_snapshot as find_snapshot
    from committer.iceberg.scan.time_travel import snapshot_as_of as snapshot_as_of
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
    from committer.iceberg.table_metadata import (
        parse_table_metadata_json as parse_table_metadata_json,
    )
    from committer.iceberg.table_metadata import print_metadata_file as print_metadata_file
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
    "changes.creation": (
        "table_of_updates",
        "updates_that_create",
    ),
    "changes.partition_field_ids": ("NEW_FIELD_ID",),
    "changes.requirements_of": (
        "requirements_of_creation",
        "requirements_of_replacement",
        "requirements_of_update",
    ),
    "column_projection": ("project_columns",),
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
    "evolution.partition_evolution": (
        "EvolvedSpec",
        "PartitionSpecUpdate",
    ),
    "evolution.schema_evolution": (
        "EvolvedSchema",
        "SchemaUpdate",
    ),
    "evolution.sort_order_evolution": ("SortOrderUpdate",),
    "expressions.binding": ("bind",),
    "expressions.expression": (
        "ALWAYS_FALSE",
        "ALWAYS_TRUE",
        "AlwaysFalse",
        "AlwaysTrue",
        "And",
        "EqualTo",
        "Expression",
        "GreaterThan",
        "GreaterThanOrEqual",
        "In",
        "IsNaN",
        "IsNull",
        "LessThan",
        "LessThanOrEqual",
        "Not",
        "NotEqualTo",
        "NotIn",
        "NotNaN",
        "NotNull",
        "NotStartsWith",
        "Or",
        "Reference",
        "StartsWith",
    ),
    "expressions.expression_json": (
        "parse_expression",
        "print_expression",
    ),
    "expressions.manifest_evaluator": ("manifest_evaluator",),
    "expressions.metrics_evaluator": (
        "inclusive_metrics_evaluator",
        "strict_metrics_evaluator",
    ),
    "expressions.projection": (
        "inclusive_projection",
        "strict_projection",
    ),
    "expressions.residual": ("residual_evaluator",),
    "expressions.row_evaluator": ("row_evaluator",),
    "expressions.where_text": ("parse_where",),
    "inspection.tables": (
        "TableSource",
        "inspect_table",
    ),
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
        "LAST_ADDED",
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
    "name_mapping": (
        "MappedField",
        "NameMapping",
        "create_name_mapping",
        "parse_name_mapping",
        "print_name_mapping",
        "update_name_mapping",
    ),
    "new_table": ("new_table_metadata",),
    "partition_spec": (
        "PartitionField",
        "PartitionSpec",
        "UNPARTITIONED",
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
    "scan.plan_files": ("plan_files",),
    "scan.scan_task": ("FileScanTask",),
    "scan.time_travel": (
        "find_snapshot",
        "snapshot_as_of",
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
        "SortField",
        "SortOrder",
        "UNSORTED",
    ),
    "table_metadata": (
        "parse_table_metadata",
        "parse_table_metadata_json",
        "print_metadata_file",
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
