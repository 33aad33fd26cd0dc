"""Checks a manifest of a request: its header against the table, and the content of its entries.

The spec is matched by its fields and the schema by its field ids and types: engines give ids anew
after a clean-up, so an id alone proves nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

from committer.errors import InvalidMetadataError, InvalidRequestError, UnsupportedError
from committer.iceberg.avro.binary import TruncatedAvroError
from committer.iceberg.avro.container import Header, iter_blocks, read_header
from committer.iceberg.entry.content_file_json import parse_content_file, unknown_keys
from committer.iceberg.entry.data_file import DataFile, ManifestContent, with_order
from committer.iceberg.entry.entry_check import check_added_file
from committer.iceberg.manifest.manifest import (
    iter_entries,
    manifest_schema,
    manifest_spec,
    manifest_version,
)
from committer.iceberg.manifest.manifest_writer import ManifestContext, encode_additions
from committer.iceberg.metadata.metadata_check import check_partition_names
from committer.iceberg.schema.bound_forms import BoundForms
from committer.iceberg.schema.partition_spec import (
    PartitionSpec,
    fixed_field,
    partition_type,
    same_fields,
)
from committer.iceberg.schema.schema import Schema
from committer.iceberg.splice.manifest_splice import ManifestPart
from committer.iceberg.splice.manifest_walk import WalkedManifest, walk_additions
from committer.iceberg.splice.work_left import WorkLeft
from committer.iceberg.values.transforms import UnknownTransform, VoidTransform
from committer.iceberg.values.types import DecimalType, StructType
from committer.reason import Reason

# The header keys that are compared; the codec and the sync marker are not.
_DECISIVE = ("schema", "partition-spec", "partition-spec-id", "format-version", "avro.schema")
# A client whose headers never repeat must not fill the memory.
_FITTING_MAX = 256
_CONTENTS = {"data": ManifestContent.DATA, "deletes": ManifestContent.DELETES}
_INLINE_SYNC = b"frazil inline 01"
_KEYS_SHOWN = 5
_KEY_LENGTH_MAX = 60


@dataclass(frozen=True, slots=True)
class CheckedManifest:
    """A manifest whose header fits the table and whose entries are plain additions."""

    spec_id: int
    part: ManifestPart

    @property
    def walked(self) -> WalkedManifest:
        return self.part.walked

    @property
    def is_of_data(self) -> bool:
        """Whether its files are data files, not delete files."""
        return not self.walked.delete_files

    def files(self) -> Iterator[DataFile]:
        """Yield its files, with the id of their partition spec. Decodes the entries again."""
        for entry in iter_entries(self.part.content):
            yield replace(entry.data_file, spec_id=self.spec_id)

    def delete_files(self) -> Iterator[DataFile]:
        """Yield its delete files, with the id of their partition spec. Decodes nothing."""
        for file in self.walked.delete_files:
            yield replace(file, spec_id=self.spec_id)


@dataclass(frozen=True, slots=True)
class _FittingHeader:
    spec_id: int
    format_version: int
    partition_type: StructType
    # The places of `void` fields in partition tuples.
    void_places: tuple[int, ...]
    # The places of decimals in partition tuples, and their types.
    decimals: tuple[tuple[int, DecimalType], ...]


class HeaderCheck:
    """Compares headers with one table's schemas and specs; remembers those that fit."""

    def __init__(
        self,
        format_version: int,
        schemas: Sequence[Schema],
        partition_specs: Sequence[PartitionSpec],
        forms: BoundForms,
    ) -> None:
        self._forms = forms
        self._format_version = format_version
        self._schemas = schemas
        self._specs = {spec.spec_id: spec for spec in partition_specs}
        self._fitting: dict[tuple[bytes, ...], _FittingHeader] = {}

    def check(
        self,
        content: memoryview | bytes,
        kind: Literal["data", "deletes"],
        place: str,
        left: WorkLeft | None = None,
    ) -> CheckedManifest:
        """Check header and entries. Errors: `InvalidRequestError`, its message names `place`;
        `TooMuchWorkError` where more would be done than is `left`.
        """
        try:
            header = read_header(content)
            if left is not None:
                _take_entries(content, header, left)
            fitting = self._fit(header, left)
            walked = walk_additions(
                content,
                fitting.partition_type,
                fitting.format_version,
                _CONTENTS[kind],
                header=header,
                forms=self._forms,
                left=left,
            )
            _check_void(walked.partitions, fitting.void_places)
            _check_digits(walked.partitions, fitting.decimals)
        except InvalidRequestError as error:
            raise InvalidRequestError(error.reason, f"{place}: {error}") from None
        except TruncatedAvroError as error:
            raise InvalidRequestError(Reason.MANIFEST_TRUNCATED, f"{place}: {error}") from None
        except InvalidMetadataError as error:
            raise InvalidRequestError(Reason.MANIFEST_MALFORMED, f"{place}: {error}") from None
        except UnsupportedError as error:
            raise InvalidRequestError(Reason.UNSUPPORTED, f"{place}: {error}") from None
        return CheckedManifest(fitting.spec_id, ManifestPart(content, walked))

    def _fit(self, header: Header, left: WorkLeft | None) -> _FittingHeader:
        key = tuple(header.metadata.get(name, b"") for name in _DECISIVE)
        known = self._fitting.get(key)
        if known is None:
            if left is not None:
                # It was not seen before: it is compared with the table, and compiled.
                left.take_decoded(header.end_offset)
            known = self._compare(header)
            if len(self._fitting) >= _FITTING_MAX:
                self._fitting.clear()
            self._fitting[key] = known
        return known

    def _compare(self, header: Header) -> _FittingHeader:
        version = manifest_version(header)
        if version > self._format_version:
            raise InvalidRequestError(
                Reason.FORMAT_VERSION_MISMATCH,
                f"a manifest of format version {version}, the table is of {self._format_version}",
            )
        written, schema = manifest_spec(header), manifest_schema(header)
        known = self._specs.get(written.spec_id)
        if known is None:
            raise _spec_unknown(written.spec_id, self._specs)
        if not same_fields(known, written):
            raise InvalidRequestError(
                Reason.SPEC_MISMATCH,
                f"partition spec {written.spec_id} has other fields than the table's",
            )
        _check_writable(known, self._schemas)
        if not any(_contains(found, schema) for found in self._schemas):
            raise InvalidRequestError(
                Reason.SCHEMA_MISMATCH,
                f"schema {schema.schema_id} has a field id or type that no schema of the table has",
            )
        void_places = tuple(
            place
            for place, field in enumerate(known.fields)
            if isinstance(field.transform, VoidTransform)
        )
        kind = partition_type(known, schema)
        decimals = tuple(
            (place, field.field_type)
            for place, field in enumerate(kind.fields)
            if isinstance(field.field_type, DecimalType)
        )
        return _FittingHeader(written.spec_id, version, kind, void_places, decimals)


def _take_entries(content: memoryview | bytes, header: Header, left: WorkLeft) -> None:
    """Take as many as the blocks announce, up to where they cannot be read. Nothing is inflated."""
    with suppress(InvalidMetadataError):
        for block in iter_blocks(content, header):
            left.take_entries(block.count)


def _check_digits(
    partitions: Sequence[tuple[object, ...]], decimals: tuple[tuple[int, DecimalType], ...]
) -> None:
    for place, kind in decimals:
        values = [partition[place] for partition in partitions]
        if not all(kind.holds(value) for value in values if isinstance(value, Decimal)):
            raise InvalidRequestError(
                Reason.PARTITION_TYPE_MISMATCH,
                f"partition field {place} is a decimal of {kind.precision} digits, a value has"
                " more",
            )


def _check_void(partitions: Sequence[tuple[object, ...]], places: tuple[int, ...]) -> None:
    """Check that a dropped field has no values: readers leave out rows by those that it has."""
    for place in places:
        if any(partition[place] is not None for partition in partitions):
            raise InvalidRequestError(
                Reason.PARTITION_TYPE_MISMATCH,
                f"partition field {place} is void, expected null as its value in each entry",
            )


def _check_writable(spec: PartitionSpec, schemas: Sequence[Schema]) -> None:
    """Refuse a transform that is not known (spec: Partitioning), names of which no reader can read
    a manifest, and partition values that Iceberg Java does not read as they are written."""
    try:
        check_partition_names(spec)
    except InvalidMetadataError as error:
        raise InvalidRequestError(
            Reason.UNSUPPORTED, f"partition spec {spec.spec_id}: {error}"
        ) from None
    for field in spec.fields:
        if isinstance(field.transform, UnknownTransform):
            raise InvalidRequestError(
                Reason.UNSUPPORTED,
                f"partition spec {spec.spec_id}: transform {field.transform} of field"
                f" `{field.name}` is not known",
            )
    fixed = next(filter(None, (fixed_field(spec, schema) for schema in schemas)), None)
    if fixed is not None:
        raise InvalidRequestError(
            Reason.UNSUPPORTED,
            f"partition spec {spec.spec_id}: field `{fixed.name}` is the {fixed.transform} of a"
            " fixed column, which Iceberg Java does not write as the specification says; change"
            " the table's partition spec to a bucket transform, or to another column",
        )


def _contains(table_schema: Schema, written: Schema) -> bool:
    """Return whether every field of a schema stands in the table's, with its id and type."""
    for _, field in written.walk():
        known = table_schema.field(field.field_id)
        if known is None or known.field_type.is_primitive != field.field_type.is_primitive:
            return False
        if field.field_type.is_primitive and known.field_type != field.field_type:
            return False
    return True


Kind = Literal["data", "deletes"]


def encode_inline_files(
    files: Sequence[object],
    format_version: int,
    schema: Schema,
    partition_specs: Sequence[PartitionSpec],
    forms: BoundForms,
) -> Iterator[tuple[Kind, bytes]]:
    """Encode the manifests of files that a request lists as JSON, one for each spec and kind.

    Errors: `InvalidRequestError` naming the file's position and the key.
    """
    specs = {spec.spec_id: spec for spec in partition_specs}
    groups: dict[tuple[int, ManifestContent], list[DataFile]] = defaultdict(list)
    for position, document in enumerate(files):
        try:
            file = _inline_file(document, specs, schema)
            # Before it is written: a manifest cannot hold all that a client may say.
            check_added_file(file, file.manifest_content, format_version, forms)
        except InvalidRequestError as error:
            raise InvalidRequestError(error.reason, f"`files` {position}: {error}") from None
        groups[file.spec_id, file.manifest_content].append(with_order(file))
    for (spec_id, content), group in sorted(groups.items()):
        _check_writable(specs[spec_id], (schema,))
        context = ManifestContext(format_version, schema, specs[spec_id], content)
        encoded = encode_additions(group, context, sync=_INLINE_SYNC).content
        yield "data" if content is ManifestContent.DATA else "deletes", encoded


def _inline_file(document: object, specs: Mapping[int, PartitionSpec], schema: Schema) -> DataFile:
    unknown = unknown_keys(document)
    if unknown:
        raise InvalidRequestError(Reason.FILE_KEY_UNKNOWN, f"unknown keys {_shown(unknown)}")
    spec_id = document.get("spec-id") if isinstance(document, dict) else None
    # A boolean is no number in JSON.
    if type(spec_id) is int and spec_id not in specs:
        raise _spec_unknown(spec_id, specs)
    try:
        return parse_content_file(document, specs, schema)
    except (InvalidMetadataError, UnsupportedError) as error:
        raise InvalidRequestError(Reason.REQUEST_MALFORMED, str(error)) from None


def _spec_unknown(spec_id: int, specs: Mapping[int, PartitionSpec]) -> InvalidRequestError:
    return InvalidRequestError(
        Reason.SPEC_UNKNOWN, f"partition spec {spec_id}, the table has {sorted(specs)}"
    )


def _shown(keys: Sequence[str]) -> str:
    texts = [ascii(key[:_KEY_LENGTH_MAX]) for key in keys[:_KEYS_SHOWN]]
    return ", ".join(texts) + (", …" if len(keys) > _KEYS_SHOWN else "")
