"""The check that every request passes before it may join a batch.

Nothing that a request says of itself is believed: entries are walked, counts and partition
summaries recomputed, schema and spec compared with the table's. A fault is
an `InvalidRequestError` with its reason code; the caller quarantines that request alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from committer.errors import (
    InvalidMetadataError,
    InvalidRequestError,
    InvariantError,
    UnsupportedError,
)
from committer.iceberg.evolution.schema_evolution import EvolvedSchema
from committer.iceberg.metadata.location_properties import NO_FOLDERS, AllowedLocations
from committer.iceberg.metadata.table_metadata import TableMetadata
from committer.iceberg.schema.bound_forms import bound_forms
from committer.iceberg.schema.partition_spec import PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.splice.work_left import WorkLeft
from committer.ledger_entry import property_key
from committer.plan.batch.adopted_paths import adopt_locations, check_adopted_paths
from committer.plan.batch.checked_filters import NO_FILTERS, CheckedFilters, check_filters
from committer.plan.batch.data_locations import (
    AllowedPlaces,
    all_name_attempt,
    check_place,
    comparable_name,
    names_attempt,
)
from committer.plan.batch.delete_files import DeleteFileCheck
from committer.plan.batch.needed_columns import with_needed_columns
from committer.plan.batch.operation_files import check_operation_files
from committer.plan.batch.submitted_manifest import (
    CheckedManifest,
    HeaderCheck,
    encode_inline_files,
)
from committer.plan.ledger.former_catalogs import parse_former_catalogs
from committer.reason import Reason
from committer.request.alterations import SetProperties
from committer.request.commit_request import CommitRequest, ManifestReference
from committer.request.needs import TAKE_DELETES
from committer.request.request_format import EncodedRequest, digest

_PATHS_AT_ONCE = 1_000
ENTRY_BYTES = 512
"""What the work on an entry of a manifest counts as: it takes some 40 µs to decode and to write
anew, however few bytes it was deflated to."""


@dataclass(frozen=True, slots=True)
class CheckedRequest:
    """A request that may be committed to a table with this basis.

    `filters`: those of its needs. The documents that they were read from may be gone.
    """

    sealed: EncodedRequest
    basis: CheckBasis
    manifests: tuple[CheckedManifest, ...]
    filters: CheckedFilters = NO_FILTERS

    @property
    def request(self) -> CommitRequest:
        return self.sealed.request

    @property
    def size_bytes(self) -> int:
        return len(self.sealed.content)

    @property
    def weight_bytes(self) -> int:
        """What the work on its manifests counts as, each of which may have to be inflated, decoded
        and encoded anew: a few bytes may hold very many entries."""
        walked = (manifest.walked for manifest in self.manifests)
        work = (max(one.inflated_bytes, ENTRY_BYTES * one.added_files_count) for one in walked)
        return max(self.size_bytes, sum(work))

    @property
    def inflated_bytes(self) -> int:
        """The size of what is kept beside the request's bytes: blocks that cannot be moved as they
        are, and the names of files."""
        blocks = (block for manifest in self.manifests for block in manifest.walked.blocks)
        raw_bytes = sum(len(block.raw) for block in blocks if block.raw is not None)
        return raw_bytes + _named_bytes(self.request.needs.named_files)

    @property
    def files_count(self) -> int:
        return sum(manifest.walked.added_files_count for manifest in self.manifests)


@dataclass(frozen=True, slots=True)
class NeedsManifests:
    """The request names manifests in storage, with their lengths: read these (one byte more tells a
    longer one, whatever its size) and check again with the bytes.
    """

    lengths: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Inflates:
    """The request may land, and what is kept of it takes so much more memory than its bytes that
    the caller has to reserve room for it.
    """

    size_bytes: int


@dataclass(frozen=True, slots=True)
class CheckBasis:
    """All of a table that a check depends on. While it is unchanged a check stays valid."""

    catalog: str
    table_uuid: UUID
    format_version: int
    current_schema_id: int
    schemas: tuple[Schema, ...]
    last_column_id: int
    partition_specs: tuple[PartitionSpec, ...]
    places: AllowedPlaces
    branches: frozenset[str]
    property_key_chars_max: int | None = None
    former_catalogs: frozenset[str] = frozenset()
    adopt_locations: tuple[str, ...] = ()
    transaction_tables_max: int = 0
    tags: frozenset[str] = frozenset()
    location: str = ""
    allowed: AllowedLocations = NO_FOLDERS

    @classmethod
    def of(
        cls,
        catalog: str,
        metadata: TableMetadata,
        property_key_chars_max: int | None = None,
        transaction_tables_max: int = 0,
        allowed: AllowedLocations = NO_FOLDERS,
    ) -> CheckBasis:
        """Return the basis of a table. `transaction_tables_max`: how many tables its catalog can
        change together; 0: it cannot. `allowed`: where tables may be.
        """
        return cls(
            catalog,
            metadata.require_uuid(),
            metadata.format_version,
            metadata.current_schema_id,
            metadata.schemas,
            metadata.last_column_id,
            metadata.partition_specs,
            AllowedPlaces.of(metadata),
            frozenset({"main", *metadata.branches}),
            property_key_chars_max,
            parse_former_catalogs(metadata.properties),
            adopt_locations(metadata.properties),
            transaction_tables_max,
            frozenset(name for name, ref in metadata.refs.items() if ref.type == "tag"),
            metadata.location,
            allowed,
        )


# Measured: of the text, and of the object that names a delete file.
_NAME_BYTES = 500
# A small request has room for so many: its line's values are counted where it waits.
_NAMES_FREE = 500


def _named_bytes(paths: Sequence[str]) -> int:
    if len(paths) <= _NAMES_FREE:
        return 0
    return sum(_NAME_BYTES + len(path) for path in paths)


def within(
    checked: CheckedRequest | NeedsManifests, inflated_bytes_max: int
) -> CheckedRequest | NeedsManifests | Inflates:
    """Return the result of the check, or `Inflates` if it keeps more bytes than allowed."""
    if isinstance(checked, CheckedRequest) and checked.inflated_bytes > inflated_bytes_max:
        return Inflates(checked.inflated_bytes)
    return checked


class Checker:
    """Checks requests against one basis; remembers which manifest headers were found good."""

    def __init__(self, basis: CheckBasis, current_schema: Schema) -> None:
        self.basis = basis
        self.current_schema = current_schema
        self._forms = bound_forms(basis.schemas, current_schema, basis.last_column_id)
        self._headers = HeaderCheck(
            basis.format_version, basis.schemas, basis.partition_specs, self._forms
        )

    def check(
        self,
        sealed: EncodedRequest,
        read: Mapping[str, bytes] | None = None,
        *,
        left: WorkLeft | None = None,
    ) -> CheckedRequest | NeedsManifests:
        """Check a request; `read` holds the bytes of manifests that it names by path.

        Errors: `InvalidRequestError`; `TooMuchWorkError` where more would be done than is `left`.
        Cost: one walk over the entries, statistics are skipped.
        """
        request = sealed.request
        if not sealed.is_whole:
            raise InvariantError(f"request `{request.inbox_key}` is checked without its files")
        self.check_target(request)
        filters = check_filters(request.needs, self.current_schema)
        _check_version(request, self.basis.format_version)
        _check_transaction(request, self.basis.transaction_tables_max)
        _check_locations(request, self.basis)
        named = {ref.path: ref.length for ref in request.manifests if ref.path is not None}
        for path in named:
            check_place(path, "manifest", self.basis.places.refusal(path))
        missing = {path: length for path, length in named.items() if path not in (read or {})}
        if missing:
            return NeedsManifests(missing)
        checker = self._with_needed_columns(request) if request.changes else self
        manifests = tuple(checker._manifests(sealed, read or {}, left))
        checker._check_added(request, manifests)
        _check_operation(request)
        return CheckedRequest(sealed, self.basis, manifests, filters)

    def _with_needed_columns(self, request: CommitRequest) -> Checker:
        """Return the checker of the table with the columns that the request adds itself."""
        basis = self.basis
        try:
            evolved = with_needed_columns(
                request.changes if request.operation != "alter" else (),
                EvolvedSchema(self.current_schema, basis.last_column_id),
                format_version=basis.format_version,
                specs=basis.partition_specs,
            )
        except (InvalidMetadataError, UnsupportedError) as error:
            raise _refused(Reason.SCHEMA_MISMATCH, f"`changes`: {error}") from None
        schemas = (*basis.schemas, evolved.schema)
        table = replace(basis, schemas=schemas, last_column_id=evolved.last_column_id)
        return Checker(table, evolved.schema)

    def check_target(self, request: CommitRequest) -> None:
        """Check, before the ledger of this table is asked, that a request is for this table."""
        basis = self.basis
        if request.catalog != basis.catalog and request.catalog not in basis.former_catalogs:
            raise _refused(
                Reason.CATALOG_MISMATCH,
                f"it is for catalog `{request.catalog}`, this committer serves `{basis.catalog}`",
            )
        if request.table_uuid != basis.table_uuid:
            raise _refused(
                Reason.TABLE_UUID_MISMATCH,
                f"it is for table uuid {request.table_uuid}, `{request.identifier}` is now"
                f" {basis.table_uuid}: the table was dropped and created again",
            )
        if request.branch not in basis.branches:
            _check_creates_branch(request, basis)
        _check_ledger_key(request, basis.property_key_chars_max)

    def _manifests(
        self, sealed: EncodedRequest, read: Mapping[str, bytes], left: WorkLeft | None
    ) -> Iterable[CheckedManifest]:
        for number, reference in enumerate(sealed.request.manifests):
            place = f"manifest {number}"
            content = self._content(sealed, reference, read, place)
            checked = self._headers.check(content, reference.content, place, left)
            _check_counts(checked, reference, place)
            yield checked
        if sealed.request.files:
            encoded = encode_inline_files(
                sealed.request.files,
                self.basis.format_version,
                self.current_schema,
                self.basis.partition_specs,
                self._forms,
            )
            for kind, manifest in encoded:
                yield self._headers.check(manifest, kind, "`files`")

    def _content(
        self,
        sealed: EncodedRequest,
        reference: ManifestReference,
        read: Mapping[str, bytes],
        place: str,
    ) -> memoryview:
        if reference.path is None:
            return sealed.manifest(reference)
        content = read[reference.path]
        if len(content) != reference.length or digest(content) != reference.hash:
            raise _refused(
                Reason.HASH_MISMATCH, f"{place}: `{reference.path}` has another length or hash"
            )
        return memoryview(content)

    def _check_added(self, request: CommitRequest, manifests: tuple[CheckedManifest, ...]) -> None:
        """Check the files of a request together: each manifest is right by itself."""
        if any(manifest.walked.delete_files for manifest in manifests):
            _check_takes_deletes(request)
            DeleteFileCheck(self.basis.format_version, self.basis.schemas).check(manifests)
        check_operation_files(request, manifests)
        self._check_paths(request, manifests)

    def _check_paths(self, request: CommitRequest, manifests: tuple[CheckedManifest, ...]) -> None:
        if request.adopt_existing:
            adopted = (path for manifest in manifests for path in manifest.walked.paths)
            check_adopted_paths(adopted, self.basis.places, self.basis.adopt_locations)
            return
        attempt, seen = str(request.attempt), 0
        names: set[str] = set()
        for paths in _distinct_paths(manifests):
            for start in range(0, len(paths), _PATHS_AT_ONCE):
                some = paths[start : start + _PATHS_AT_ONCE]
                plain = self.basis.places.plain_names(some)
                if plain is None or not all_name_attempt(plain, attempt):
                    self._check_each_path(some, attempt)
                # By the name alone, as a folder may be reached by several paths.
                names.update(map(comparable_name, some) if plain is None else map(str.lower, plain))
            seen += len(paths)
        if len(names) != seen:
            raise _refused(
                Reason.PATH_REPEATED,
                f"{seen - len(names)} of {seen} data files have the name of another one (in any"
                " folder, upper and lower case alike): give each its own",
            )

    def _check_each_path(self, paths: Sequence[str], attempt: str) -> None:
        for path in paths:
            check_place(path, "data file", self.basis.places.data_refusal(path))
            if not names_attempt(path, attempt):
                raise _refused(
                    Reason.PATH_WITHOUT_ATTEMPT,
                    f"the file name of `{path}` does not have the attempt {attempt} as its last"
                    " uuid",
                )


def added_paths(checked: CheckedRequest) -> list[str]:
    """Return the paths of the files that a checked request adds, each once."""
    return [path for paths in _distinct_paths(checked.manifests) for path in paths]


def _distinct_paths(manifests: Iterable[CheckedManifest]) -> Iterator[Sequence[str]]:
    """Yield the paths of each manifest. The vectors of one Puffin file share its path."""
    puffins: set[str] = set()
    for manifest in manifests:
        deletes = manifest.walked.delete_files
        if not deletes:
            yield manifest.walked.paths
            continue
        vectors = {file.file_path for file in deletes if file.is_deletion_vector}
        yield [file.file_path for file in deletes if not file.is_deletion_vector]
        yield sorted(vectors - puffins)
        puffins |= vectors


def _check_creates_branch(request: CommitRequest, basis: CheckBasis) -> None:
    """Refuse a request for a branch that is not there, and that it does not create."""
    where = f"table `{request.identifier}` has no branch `{request.branch}`"
    if not request.create_branch:
        raise _refused(Reason.BRANCH_UNKNOWN, where)
    if request.branch in basis.tags:
        raise _refused(
            Reason.BRANCH_UNKNOWN,
            f"{where}, and `create-branch` cannot create it: a tag has this name; name another"
            " branch, or remove the tag",
        )


def _check_ledger_key(request: CommitRequest, chars_max: int | None) -> None:
    """Refuse a producer whose ledger entry the catalog has no room to name."""
    key = property_key(request.producer.id, request.branch)
    if chars_max is not None and len(key) > chars_max:
        raise _refused(
            Reason.PRODUCER_ID_TOO_LONG,
            f"producer `{request.producer.id}`: its ledger entry, the table property `{key}`, has a"
            f" name of {len(key)} characters, and this catalog takes {chars_max}",
        )


def _check_operation(request: CommitRequest) -> None:
    """Refuse a transaction that changes more than the files of a branch."""
    is_pick = request.operation == "cherry-pick"
    if request.transaction and (request.changes or request.stage_only or is_pick):
        raise _refused(
            Reason.UNSUPPORTED,
            "not supported by this version: a change of the table, a pick or a staged snapshot in a"
            " `transaction`",
        )


def _check_locations(request: CommitRequest, basis: CheckBasis) -> None:
    """Refuse a change that would move the table's files to where no table may be."""
    for change in request.changes:
        if isinstance(change, SetProperties):
            refusal = basis.allowed.property_refusal(change.updates, basis.location)
            if refusal is not None:
                raise _refused(Reason.LOCATION_NOT_ALLOWED, refusal)


def _check_takes_deletes(request: CommitRequest) -> None:
    if request.operation not in TAKE_DELETES:
        raise _refused(
            Reason.REQUEST_MALFORMED,
            f"operation `{request.operation}` with delete files: it adds data files only",
        )


def _check_version(request: CommitRequest, format_version: int) -> None:
    if format_version < 2 and request.needs.data_sequence_number is not None:
        raise _refused(
            Reason.FORMAT_VERSION_MISMATCH,
            "`data-sequence-number` for a table of format version 1, which has no such numbers",
        )


def _check_transaction(request: CommitRequest, tables_max: int) -> None:
    """Refuse a transaction that the catalog cannot apply in one step."""
    transaction = request.transaction
    if transaction is None:
        return
    if not tables_max:
        raise _refused(
            Reason.UNSUPPORTED,
            f"transaction {transaction.id}: this catalog cannot change several tables in one atomic"
            " commit",
        )
    if len(transaction.tables) > tables_max:
        raise _refused(
            Reason.UNSUPPORTED,
            f"transaction {transaction.id} names {len(transaction.tables)} tables: this catalog"
            f" changes at most {tables_max} in one atomic commit",
        )


def _check_counts(checked: CheckedManifest, reference: ManifestReference, place: str) -> None:
    walked = checked.walked
    if checked.spec_id != reference.partition_spec_id:
        raise _refused(
            Reason.SPEC_MISMATCH,
            f"{place} is of spec {checked.spec_id}, its reference says"
            f" {reference.partition_spec_id}",
        )
    found = (walked.added_files_count, walked.added_rows_count)
    said = (reference.added_files_count, reference.added_rows_count)
    if found != said:
        raise _refused(
            Reason.COUNT_MISMATCH,
            f"{place} holds {found[0]} files and {found[1]} rows, its reference says {said[0]} and"
            f" {said[1]}",
        )


def _refused(reason: Reason, message: str) -> InvalidRequestError:
    return InvalidRequestError(reason, message)
