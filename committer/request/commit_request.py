"""The JSON line of a commit request, as models.

This is a durable format and the contract with every client, in any language: the JSON Schema in
`docs/reference/` is produced from the models here.
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from committer.ledger_entry import OPERATOR_PREFIX, UPKEEP_PREFIX
from committer.reason import Reason
from committer.request.alterations import TableChanges, UnionByName
from committer.request.attempt import attempt_number, attempt_of, nonce_ms
from committer.request.needs import TAKE_DELETES, Needs, Operation, check_needs
from committer.request.request_key import inbox_key, path_segment
from committer.request.request_model import (
    FIRST_ERROR,
    Count,
    Document,
    Model,
    Name,
    Printable,
    at_most,
)
from committer.request.table_identifier import TableIdentifier
from committer.request.transaction import TableName, Transaction

REQUEST_BYTES_MAX = 64 * 1024 * 1024
EPOCH_MAX = 2**63 - 1


def _integer(value: object) -> object:
    """Refuse a value that is no integer: a literal is compared,
    and `true` and `1.0` are equal to 1."""
    if type(value) is not int:
        raise ValueError("expected an integer")
    return value


ProducerId = Annotated[Name, AfterValidator(path_segment)]
Digest = Annotated[str, Field(pattern=r"^blake2b-256:[0-9a-f]{64}$")]


class Producer(Model):
    """A stable identity of one writing query.

    `sequential`: epoch N is made durable only after all lower ones (Spark's own query id).
    `ordered`: epochs land in ascending order. `one_shot`: this identity never publishes again.
    `name`: what people call it; shown to them, and never compared.
    """

    id: ProducerId
    name: Name | None = None
    sequential: bool = False
    ordered: bool = False
    one_shot: bool = False


class Fingerprint(Model):
    """The identity of an epoch's content, with its kind. Only equal kinds are compared."""

    kind: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,40}$")]
    value: Annotated[str, Field(max_length=128), Printable]


class ManifestReference(Model):
    """A manifest that follows the line (`offset`, from the byte after the newline), or one that the
    client has written into the table's metadata folder (`path`)."""

    content: Literal["data", "deletes"]
    partition_spec_id: Annotated[int, Field(ge=0)]
    length: Annotated[int, Field(ge=1, le=REQUEST_BYTES_MAX)]
    added_files_count: Count
    added_rows_count: Count
    hash: Digest
    offset: Count | None = None
    path: Annotated[str, Field(min_length=1, max_length=4096)] | None = None

    @model_validator(mode="after")
    def _offset_or_path(self) -> Self:
        if (self.offset is None) == (self.path is None):
            raise ValueError("expected either `offset` or `path`")
        return self


SUMMARY_ENTRIES_MAX = 100
# More files than a line of 4 MiB can describe: a path alone takes 36 bytes for the attempt.
FILES_INLINE_MAX = 25_000
# Operations whose snapshot may wait to be published.
_STAGED: frozenset[Operation] = frozenset(
    {"append", "overwrite", "replace-partitions", "delete", "row-delta", "rewrite-files"}
)
# Operations whose files may have columns that the table gets with them.
_BRING_COLUMNS: frozenset[Operation] = frozenset({"append", "overwrite", "row-delta"})


def _no_own_keys(summary: dict[str, str]) -> dict[str, str]:
    if any(key.startswith("frazil.") for key in summary):
        raise ValueError("keys that begin with `frazil.` are the committer's own")
    return summary


Summary = Annotated[
    dict[Name, Annotated[str, Field(max_length=4096), Printable]],
    Field(max_length=SUMMARY_ENTRIES_MAX),
    at_most(SUMMARY_ENTRIES_MAX),
    AfterValidator(_no_own_keys),
]


class CommitRequest(Model):
    """The JSON line: one atomic change of one (table uuid, producer, epoch, attempt).

    `attempt` follows from `nonce` and what stands beside it (`attempt_of`), and is checked.
    `summary`: entries for the summary of its snapshot; those that are computed count more.
    `stage_only`: the snapshot gets no ref. `create_branch`: a branch that is not there begins at
    the head of main. `changes`: of the table, with operation `alter`.
    `transaction`: it lands together with the requests of other tables, or not at all.
    """

    request_version: Annotated[Literal[1], BeforeValidator(_integer)] = 1
    catalog: Name
    table: TableName
    table_uuid: UUID
    branch: Name = "main"
    producer: Producer
    epoch: Annotated[int, Field(ge=0, le=EPOCH_MAX)]
    nonce: UUID
    attempt: UUID
    fingerprint: Fingerprint
    published_at_ms: Count
    operation: Operation = "append"
    needs: Needs = Needs()
    stage_only: bool = False
    create_branch: bool = False
    summary: Summary = Field(default_factory=dict)
    changes: TableChanges = ()
    adopt_existing: bool = False
    transaction: Transaction | None = None
    signature: Annotated[str, Field(max_length=1024)] | None = None
    key_id: Name | None = None
    not_after_ms: Count | None = None
    manifests: Annotated[tuple[ManifestReference, ...], Field(max_length=10_000), FIRST_ERROR] = ()
    files: Annotated[tuple[Document, ...], Field(max_length=FILES_INLINE_MAX), FIRST_ERROR] = ()

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        self._check_operation()
        if self.transaction is not None:
            self.transaction.require(self.table, self.table_uuid)
        if (self.signature is None) != (self.key_id is None):
            raise ValueError("expected `signature` and `key-id` together")
        if self.not_after_ms is not None and self.signature is None:
            raise ValueError("expected `not-after-ms` with a signature only")
        if self.producer.sequential and self.producer.one_shot:
            raise ValueError("a producer is not sequential and one-shot at once")
        if self.producer.one_shot and nonce_ms(self.nonce) is None:
            raise ValueError("expected a UUIDv7 as the nonce of a one-shot producer")
        return self

    def _check_operation(self) -> None:
        check_needs(self.operation, self.needs, adds_files=bool(self.manifests or self.files))
        holds_deletes = any(one.content == "deletes" for one in self.manifests)
        if holds_deletes and self.operation not in TAKE_DELETES:
            raise ValueError(f"expected no manifest of deletes with operation `{self.operation}`")
        self._check_changes()
        if self.stage_only and self.operation not in _STAGED:
            raise ValueError(f"expected no `stage-only` with operation `{self.operation}`")
        if self.create_branch:
            self._check_create_branch()
        if self.summary and self.operation == "alter":
            raise ValueError("expected no `summary` with operation `alter`: it makes no snapshot")
        if self.adopt_existing and self.operation != "append":
            raise ValueError("expected `adopt-existing` with operation `append` only")

    def _check_create_branch(self) -> None:
        if self.operation not in _STAGED:
            raise ValueError(f"expected no `create-branch` with operation `{self.operation}`")
        if self.stage_only:
            raise ValueError("expected no `create-branch` with `stage-only`, which moves no branch")
        if self.transaction is not None:
            raise ValueError("expected no `create-branch` with `transaction`: create it before")

    def _check_changes(self) -> None:
        if self.operation == "alter" and not self.changes:
            raise ValueError("expected `changes` with operation `alter`")
        if self.operation == "alter" or not self.changes:
            return
        unions = [one for one in self.changes if isinstance(one, UnionByName) and one.with_ids]
        brings = self.operation in _BRING_COLUMNS and not self.stage_only
        if not brings or len(unions) < len(self.changes):
            raise ValueError(
                "expected `changes` with operation `alter`, or of an append, an overwrite or a"
                " row-delta those by the action `union-by-name` with `with-ids`"
            )

    @property
    def identifier(self) -> TableIdentifier:
        return TableIdentifier(self.table.namespace, self.table.name)

    def is_told_only(self, reason: str, conflict: str | None) -> bool:
        """Return whether a refusal is only told: the answer is kept, and no request. That is so for
        a client that asks to be told of its conflict, also if that leaves a transaction incomplete;
        and for a command without files, unless another committer may land what the catalog refused;
        and for upkeep that only the process which asked for it could tell from a forgery.
        """
        if self.producer.id.startswith(UPKEEP_PREFIX) and reason == Reason.UNSIGNED_OPERATION:
            return True
        adds_files = bool(self.manifests or self.files)
        if self.producer.id.startswith(OPERATOR_PREFIX) and not adds_files:
            return reason != Reason.COMMIT_REJECTED
        is_incomplete = reason == Reason.TRANSACTION_INCOMPLETE and conflict is not None
        return self.needs.on_conflict == "fail" and (reason == Reason.CONFLICT or is_incomplete)

    @property
    def expected_attempt(self) -> UUID:
        return attempt_of(self.table_uuid, self.branch, self.producer.id, self.epoch, self.nonce)

    @property
    def has_its_attempt(self) -> bool:
        """Whether the attempt is the expected one."""
        return self.attempt.int == attempt_number(
            self.table_uuid, self.branch, self.producer.id, self.epoch, self.nonce
        )

    @cached_property
    def inbox_key(self) -> str:
        return inbox_key(self.table_uuid, self.producer.id, self.epoch, self.attempt)
