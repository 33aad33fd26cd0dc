"""One micro-batch upserted by positions: looked up, published, and looked up again where it
conflicts, until it has landed once.

Runs on the driver. Each try is another attempt at the same epoch, so whichever lands first counts,
whole; a micro-batch that Spark runs again finds in the ledger that it has landed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from committer.errors import PublishError, SettingsError
from committer.reason import Reason
from committer.request.receipt_model import Receipt
from workers.branches.attempt_identity import AttemptIdentity
from workers.branches.fresh_nonce import fresh_nonce
from workers.changes.change_options import ChangeOptions
from workers.changes.change_run import ChangeRun
from workers.changes.changed_table import ChangedTable, open_changed_table
from workers.changes.publish_change import (
    PreparedChange,
    delete_written,
    publish_change,
    written_epoch,
)
from workers.changes.upserts.upserted_rows import prepare_upsert
from workers.changes.upserts.winners import Winners, winners_of
from workers.requests.publisher import PublishPolicy
from workers.requests.receipts import landed_before
from workers.settings.options import WriteOptions
from workers.settings.upsert_options import KEYS
from workers.settings.wap import SessionWap, choose_destination, refuse_staged_stream
from workers.settings.worker_settings import load_settings
from workers.sink.identity import MicroBatch
from workers.sink.publication import EpochIdentity, batch_identity, producer_of
from workers.sink.wanted_table import load_target

_log = logging.getLogger("frazil.workers")

# Of writers that meet all the time one lands each time, so that many are seldom needed.
_TRIES_MAX = 100

PrepareUpsert = Callable[[ChangeRun, Winners], PreparedChange | None]


@dataclass(frozen=True, slots=True)
class Tries:
    """The tries of a micro-batch, and their limit: other values are of tests."""

    prepare: PrepareUpsert = prepare_upsert
    most: int = _TRIES_MAX


_USUAL = Tries()


def upsert_micro_batch(
    dataframe: Any,
    options: WriteOptions,
    micro_batch: MicroBatch | None,
    tries: Tries = _USUAL,
) -> Receipt | None:
    """Upsert the rows of a micro-batch, and return once it has landed; None if it had before, or
    changes nothing. `micro_batch`: as Spark knows it; None where the options name its epoch.

    Errors: `PublishError` for rows that do not fit, or where others change the same rows all the
    time; those of `Publisher.publish`.
    """
    if options.upsert is None:
        raise SettingsError(f"option `{KEYS}`: expected the columns of the key")
    target = load_target(options, dataframe.schema)
    session = SessionWap.of_session(dataframe.sparkSession)
    place = choose_destination(options.branch, options.wap, session, target.properties)
    refuse_staged_stream(place, target.name)
    identity = identify(options, micro_batch)
    upserting = _MicroBatch(dataframe.sparkSession, options, session, identity)
    if upserting.has_landed():
        return None
    with winners_of(dataframe, options.upsert, target.schema) as winners:
        return upserting.land(winners, tries) if winners.keys.rows else None


def identify(options: WriteOptions, micro_batch: MicroBatch | None) -> EpochIdentity:
    """Return the epoch of a micro-batch, as `format("frazil")` has it."""
    if micro_batch is None and options.epoch is None:
        raise SettingsError("an upsert by positions outside a streaming query: name its `producer`")
    producer = producer_of(options, micro_batch or fresh_nonce(), is_in_order=True)
    access = load_settings(options.settings).access
    return batch_identity(options, producer, micro_batch, access)


def next_attempt(identity: EpochIdentity) -> AttemptIdentity:
    """Return one more attempt at an epoch."""
    return AttemptIdentity(fresh_nonce(), identity.producer, identity.epoch, identity.fingerprint)


@dataclass(frozen=True, slots=True)
class _MicroBatch:
    spark: Any
    options: WriteOptions
    session: SessionWap
    identity: EpochIdentity

    def has_landed(self) -> bool:
        with open_changed_table(self._change_options) as table:
            return self._has_landed(table)

    def land(self, winners: Winners, tries: Tries) -> Receipt | None:
        """Try until it has landed. Errors: `PublishError` after so many conflicts."""
        conflict = ""
        for _ in range(tries.most):
            with open_changed_table(self._change_options) as table:
                if self._has_landed(table):
                    return None  # by an attempt of before
                attempt = next_attempt(self.identity)
                change = ChangeRun(self.spark, table, attempt, "upsert")
                prepared = tries.prepare(change, winners)
                if prepared is None:
                    return None
                receipt = self._publish(table, attempt, prepared)
                if receipt.reason != Reason.CONFLICT:
                    return receipt
                # It was told alone: it is not kept, nor lands later.
                delete_written(prepared.written, table)
            conflict = receipt.message or ""
            _log.info("%s is looked up again: %s", self, conflict)
        raise PublishError(f"{self} conflicted {tries.most} times, the last time with: {conflict}")

    def _has_landed(self, table: ChangedTable) -> bool:
        epoch = written_epoch(table, next_attempt(self.identity), PreparedChange("row-delta"))
        return landed_before(table.state.metadata, epoch) is not None

    def _publish(
        self, table: ChangedTable, attempt: AttemptIdentity, prepared: PreparedChange
    ) -> Receipt:
        policy = PublishPolicy(
            self.options.on_quarantine,
            "committed",
            self.options.wait_timeout_s,
            answers_conflicts=True,
        )
        return publish_change(table, attempt, prepared, policy)

    @property
    def _change_options(self) -> ChangeOptions:
        options = self.options
        return ChangeOptions(
            options.table,
            options.settings,
            options.branch,
            wait_timeout_s=options.wait_timeout_s,
            wap=options.wap,
            session=self.session,
        )

    def __str__(self) -> str:
        return f"micro-batch {self.identity.epoch} of the upsert of table `{self.options.table}`"
