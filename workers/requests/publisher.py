"""Publishes the files of one epoch: a commit request, durable in the inbox, then announced.

Runs on the driver. `receipts.py` waits for the committer's answer; `blocking_publisher.py` calls
this from a Spark worker process without an event loop.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from committer.errors import (
    FrazilError,
    InvalidRequestError,
    NotFoundError,
    PublishError,
    TransientError,
)
from committer.ports.pointer_swap import LoadedTable
from committer.ports.queue import Doorbell, Queue
from committer.ports.world import World, spread_s
from committer.reason import Reason
from committer.request.commit_request import CommitRequest
from committer.request.receipt_model import Receipt, ReceiptState
from committer.request.request_format import (
    EncodedRequest,
    inline_references,
    line_digest,
    read_request,
)
from committer.request.request_key import parse_inbox_key
from committer.request.table_identifier import TableIdentifier
from committer.request.transaction import TableName
from committer.storage.inbox.inbox import Inbox, Quarantine
from committer.storage.inbox.key_file import KeyFile
from committer.storage.inbox.signing import seal_signed
from workers.requests.backlog import USUAL_BACKLOG, BacklogPolicy, BacklogWaiter
from workers.requests.mailbox import Mailbox
from workers.requests.receipts import ReceiptWaiter, Target
from workers.requests.repeated_attempts import RepeatedAttempts, is_same_write
from workers.requests.sparse_log import SparseLog
from workers.requests.table_cache import TableCache
from workers.requests.written_epoch import (
    RequestedTable,
    WrittenEpoch,
    changes_of,
    encode_manifests,
)

_log = logging.getLogger("frazil.workers")

# A table seen so lately is not asked again whether it still is what the files were written for. The
# committer asks it in any case.
_TABLE_S_MAX = 30.0
_PRODUCERS_MAX = 10_000
_PUT_DELAYS_S = (0.2, 0.4, 0.8, 1.6, 3.2)
_FEWER_BYTES = (
    "Write fewer, larger files (repartition the rows by the table's partition columns before the"
    " write), or keep fewer column metrics (table property `write.metadata.metrics.default` with"
    " value `counts` or `none`), and run the write again. Smaller micro-batches prevent it"
    " (`maxFilesPerTrigger`, `maxOffsetsPerTrigger`), but Spark runs one that it has begun as it is"
)
_FEWER_FILES = (
    "Add the files in several calls, or keep fewer column metrics (table property"
    " `write.metadata.metrics.default`)"
)


@dataclass(frozen=True, slots=True)
class PublishPolicy:
    """Reaction to an earlier epoch in quarantine, the state to wait for, and when to slow down.

    `answers_conflicts`: a conflict that is only told is a receipt like any other, and no error.
    """

    on_quarantine: Literal["fail", "continue"] = "fail"
    wait: Literal["durable", "committed"] = "durable"
    wait_timeout_s: float = 300.0
    backlog: BacklogPolicy = USUAL_BACKLOG
    answers_conflicts: bool = False


class Publisher:
    """Publishes to the committer of one catalog. Any number of tasks may call it, of one producer
    one at a time."""

    def __init__(
        self,
        *,
        catalog_name: str,
        tables: TableCache,
        inbox: Inbox,
        quarantine: Quarantine,
        queue: Queue | None,
        world: World,
        key_file: KeyFile | None = None,
    ) -> None:
        self._catalog_name = catalog_name
        self._tables = tables
        self._inbox = inbox
        self._quarantine = quarantine
        self._queue = queue
        self._world = world
        self._log = SparseLog(_log, world)
        self._key_file = key_file
        self._committed: dict[tuple[UUID, str], int] = {}
        self._attempts = RepeatedAttempts(tables, inbox, quarantine)
        self._mailbox: Mailbox | None = None
        self._waiter = ReceiptWaiter(tables, inbox, quarantine, world)
        self._backlog = BacklogWaiter(queue, world) if queue is not None else None

    async def load_table(self, identifier: TableIdentifier) -> LoadedTable:
        """Load the table as it is now. Absent: `NoSuchTableError`."""
        return await self._tables.current(identifier)

    async def publish(self, written: WrittenEpoch, policy: PublishPolicy) -> Receipt:
        """Return once the request is durable, or committed if the policy says so. Durable it
        returns later where the committer is behind, and its receipt has a `backlog` then.

        Errors: `PublishError` where it may not be published, or where waiting ended without an
        answer (the request is durable then, and is not lost); `TransientError` and `AccessError` of
        the inbox, after some attempts.
        """
        table = await self._table_of(written)
        await self._check_quarantine(written, policy)
        sealed = await self._make_durable(written, await self.encode(table, written))
        waits = policy.wait == "committed"
        mailbox = self._open_mailbox() if waits else None
        told = await self._announce(sealed, mailbox)
        if not waits:
            return _durable(written, await self._slowed(written, told, policy))
        target = Target(sealed.request, None if told is None else mailbox)
        receipt = await self._wait(target, policy)
        self._note(written, receipt)
        return receipt

    async def encode(self, table: RequestedTable, written: WrittenEpoch) -> EncodedRequest:
        """Encode one request, which is never split, so that it lands whole or not at all. Errors:
        `PublishError` if the committer would not take it for its size.
        """
        try:
            return await self._seal(table, written)
        except InvalidRequestError as error:
            raise PublishError(
                f"epoch {written.epoch} of producer `{written.producer.id}` of table"
                f" `{written.identifier}` is not published, with {len(written.files)} data files:"
                f" {error}. {_FEWER_FILES if written.adopt_existing else _FEWER_BYTES}"
            ) from None

    # --- Before it is durable --------------------------------------------------------------------

    async def _table_of(self, written: WrittenEpoch) -> RequestedTable:
        """Return the table, which may have changed since the files were written for it."""
        seen = written.seen
        # A clock that was set back makes it a table that is to be seen yet.
        if seen and 0 <= self._world.now_ms() - seen.seen_ms < _TABLE_S_MAX * 1000:
            return seen
        known = self._tables.known_since(written.identifier, age_s_max=_TABLE_S_MAX)
        if known and _misfit(known.metadata, written) is None:
            return known.metadata
        table = (await self.load_table(written.identifier)).metadata
        misfit = _misfit(table, written)
        if misfit:
            raise PublishError(misfit)
        return table

    async def _check_quarantine(self, written: WrittenEpoch, policy: PublishPolicy) -> None:
        if policy.on_quarantine == "continue" or self._has_none_in_quarantine(written):
            return
        async for found in self._quarantine.list(written.table_uuid, written.producer.id):
            if parse_inbox_key(found.key).epoch >= written.epoch:
                return
            # Its client was told, and runs it again or goes on without it.
            if not await self._quarantine.is_told_only(found):
                raise PublishError(await self._explain(found.key, written))

    def _has_none_in_quarantine(self, written: WrittenEpoch) -> bool:
        """Return whether all earlier epochs were found well,
        and the last of them was seen to commit."""
        committed = self._committed.get((written.table_uuid, written.producer.id))
        return committed is not None and committed < written.epoch

    def _note(self, written: WrittenEpoch, receipt: Receipt) -> None:
        key = written.table_uuid, written.producer.id
        if receipt.state == ReceiptState.COMMITTED:
            if len(self._committed) >= _PRODUCERS_MAX:
                self._committed.clear()
            self._committed[key] = written.epoch
        else:
            self._committed.pop(key, None)

    async def _explain(self, key: str, written: WrittenEpoch) -> str:
        try:
            record, _ = await self._quarantine.get(key)
            why = f"{record.reason}: {record.message}"
        except (NotFoundError, InvalidRequestError):
            why = "its record cannot be read"
        return (
            f"epoch {parse_inbox_key(key).epoch} of producer `{written.producer.id}` of table"
            f" `{written.identifier}` is in quarantine ({why}), so epoch {written.epoch} is not"
            f" published. See `frazil quarantine show {key}`, then replay or discard it; or go on"
            ' without it: option("on_quarantine", "continue")'
        )

    async def _make_durable(self, written: WrittenEpoch, sealed: EncodedRequest) -> EncodedRequest:
        """Return what is durable: the request, or that of an equal write before."""
        if not written.may_repeat:
            return await self._put(sealed)
        durable = await self._attempts.find(sealed.request) or await self._put(sealed)
        self._attempts.remember(durable.request)
        return durable

    async def _seal(self, table: RequestedTable, written: WrittenEpoch) -> EncodedRequest:
        identifier = written.identifier
        manifests = encode_manifests(table, written)
        request = CommitRequest(
            catalog=self._catalog_name,
            table=TableName(namespace=identifier.namespace, name=identifier.name),
            table_uuid=written.table_uuid,
            branch=written.branch,
            producer=written.producer,
            epoch=written.epoch,
            nonce=written.nonce,
            attempt=written.attempt,
            fingerprint=written.fingerprint,
            published_at_ms=self._world.now_ms(),
            operation=written.operation,
            needs=written.needs,
            stage_only=written.stage_only,
            create_branch=written.create_branch,
            summary=dict(written.summary),
            changes=changes_of(written),
            adopt_existing=written.adopt_existing,
            transaction=written.transaction,
            manifests=inline_references(manifests),
        )
        return await seal_signed(self._key_file, request, manifests)

    async def _put(self, sealed: EncodedRequest) -> EncodedRequest:
        """Make it durable. A retry sends the same bytes, so an answer may get lost."""
        for delay_s in _PUT_DELAYS_S:
            try:
                return await self._put_once(sealed)
            except TransientError as error:
                self._log.warning("the inbox did not take a request, trying again: %s", error)
            await self._world.sleep(spread_s(delay_s, self._world))
        return await self._put_once(sealed)

    async def _put_once(self, sealed: EncodedRequest) -> EncodedRequest:
        try:
            await self._inbox.put(sealed)
        except PublishError:
            found = await self._published_before(sealed)
            if found is None:
                raise
            return found
        return sealed

    async def _published_before(self, sealed: EncodedRequest) -> EncodedRequest | None:
        """Return the request if the inbox has it:
        a repeated commit of one attempt is no second write."""
        key = sealed.request.inbox_key
        try:
            found = read_request(await self._inbox.get(key), key=key)
        except (NotFoundError, InvalidRequestError):
            return None
        return found if is_same_write(found.request, sealed.request) else None

    # --- After it is durable ---------------------------------------------------------------------

    def _open_mailbox(self) -> Mailbox | None:
        """Return the mailbox for receipts of all tables; None without a queue."""
        if self._mailbox is None and self._queue is not None:
            self._mailbox = Mailbox(self._queue, self._world, str(self._world.uuid()))
        return self._mailbox

    async def _announce(self, sealed: EncodedRequest, mailbox: Mailbox | None) -> int | None:
        """Announce it; return the backlog of the table's shard, None if it was not announced."""
        if self._queue is None:
            return None
        request = sealed.request
        doorbell = Doorbell(
            request.table_uuid,
            request.inbox_key,
            line_digest(sealed.content),
            sealed.content,
            mailbox.address if mailbox else None,
        )
        try:
            return await self._queue.announce((doorbell,))
        except FrazilError as error:
            self._log.warning(
                "epoch %d of producer `%s` is durable, but was not announced; the committer finds"
                " it by itself, later: %s",
                request.epoch,
                request.producer.id,
                error,
            )
            return None

    async def _slowed(
        self, written: WrittenEpoch, told: int | None, policy: PublishPolicy
    ) -> int | None:
        if told is None or self._backlog is None:
            return None
        return await self._backlog.wait(written.table_uuid, told, policy.backlog)

    async def _wait(self, target: Target, policy: PublishPolicy) -> Receipt:
        request = target.request
        receipt = await self._waiter.wait(target, timeout_s=policy.wait_timeout_s)
        where = f"epoch {request.epoch} of producer `{request.producer.id}`"
        if receipt is None:
            raise PublishError(
                f"{where} is durable, but table `{request.identifier}` did not show it within"
                f" {policy.wait_timeout_s:g} s (option `wait_timeout_s`): nothing is lost, it lands"
                " once the committer gets to it. Does it run? See `frazil status`"
            )
        if receipt.state == ReceiptState.QUARANTINED:
            is_told_only = request.is_told_only(receipt.reason or "", receipt.conflict)
            if is_told_only and policy.answers_conflicts:
                return receipt
            message = f"{where} went to quarantine: {_why(receipt)}"
            if is_told_only:
                message = f"{where} did not land, and is not kept: {receipt.message}"
            if policy.on_quarantine == "fail":
                raise PublishError(message)
            _log.warning("%s", message)
        return receipt


def _misfit(table: RequestedTable, written: WrittenEpoch) -> str | None:
    """Return why the files cannot be published to this table; None if they can."""
    where = f"table `{written.identifier}`"
    if table.table_uuid != written.table_uuid:
        return (
            f"{where} was dropped and created again while it was written to: the files belong to"
            f" the table with uuid {written.table_uuid}, it is now {table.table_uuid}"
        )
    schema_ids = {schema.schema_id for schema in table.schemas}
    spec_ids = {spec.spec_id for spec in table.partition_specs}
    if written.schema_id not in schema_ids or not {f.spec_id for f in written.files} <= spec_ids:
        return (
            f"{where}: the schema or partition spec that the files were written with was removed"
            " meanwhile; run the write again"
        )
    return None


def _durable(written: WrittenEpoch, backlog: int | None) -> Receipt:
    return Receipt(
        written.producer.id,
        written.epoch,
        str(written.attempt),
        ReceiptState.DURABLE,
        backlog=backlog,
    )


def _why(receipt: Receipt) -> str:
    try:
        advice = Reason(receipt.reason or "").advice
    except ValueError:
        advice = "See `frazil quarantine list`."
    return f"{receipt.reason}: {receipt.message}. {advice}"
