"""Identifies a write: the micro-batch that a Spark task belongs to, and the nonce of its attempt.

Runs on executors: knows Spark's task properties, no request and no I/O.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self
from uuid import UUID, uuid5

from committer.request.attempt import attempt_of
from workers.settings.options import WriteOptions
from workers.settings.wap import (
    TO_MAIN,
    Destination,
    SessionWap,
    choose_destination,
    refuse_staged_columns,
    refuse_staged_stream,
)
from workers.sink.target import TargetTable

# Nonces are derived below this namespace; it is part of what makes two versions agree.
_NONCES = UUID("9c6f2a51-6c0e-5d0f-9f6c-0a4b8f1d7e33")
_CHECKPOINT_CONF = "spark.sql.streaming.checkpointLocation"


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """One run of one micro-batch. A re-run has the same query and batch id, but another run id.

    `checkpoints` is the session's folder for checkpoints, if its conf names one.
    """

    query_id: str
    run_id: str
    batch_id: int
    checkpoints: str | None = None

    def nonce(self, sink: str) -> UUID:
        """Derive the nonce: the same for all tasks and the commit, without a word between them."""
        return uuid5(_NONCES, f"{self.run_id}/{sink}/{self.batch_id}")


@dataclass(frozen=True, slots=True)
class WriteIdentity:
    """The identity of a published write. Its tasks and its commit compute the same one."""

    producer: str
    epoch: int
    nonce: UUID
    destination: Destination = TO_MAIN

    @classmethod
    def of(
        cls,
        options: WriteOptions,
        source: MicroBatch | UUID,
        destination: Destination = TO_MAIN,
    ) -> Self:
        """Derive a write's identity.
        `source`: the micro-batch; of any other write, a nonce that the driver has drawn.

        The producer is the name given, else Spark's query id, else the nonce, used once.
        """
        if isinstance(source, MicroBatch):
            query, epoch, nonce = source.query_id, source.batch_id, source.nonce(options.sink)
        else:
            query, epoch, nonce = str(source), 0, source
        name = options.producer or query
        return cls(
            f"{name}/{options.sink}" if options.sink else name,
            epoch if options.epoch is None else options.epoch,
            nonce,
            destination,
        )

    @property
    def branch(self) -> str:
        return self.destination.branch

    def attempt(self, table_uuid: UUID) -> UUID:
        """Return the attempt, which the names of this write's files carry."""
        return attempt_of(table_uuid, self.branch, self.producer, self.epoch, self.nonce)


def write_destination(
    options: WriteOptions, target: TargetTable, session: SessionWap, source: MicroBatch | UUID
) -> Destination:
    """Return where the rows of a write land. `source`: as of `WriteIdentity.of`.
    Errors: `SettingsError` for options and confs that do not fit one another, or the write."""
    place = choose_destination(options.branch, options.wap, session, target.properties)
    if target.is_widened:
        refuse_staged_columns(place, target.name)
    if options.upsert is not None and isinstance(source, MicroBatch):
        refuse_staged_stream(place, target.name)
    return place


def read_micro_batch(local_property: Callable[[str], str | None]) -> MicroBatch | None:
    """Read the properties of a task; None outside a streaming query.

    Errors: `ValueError` where the program has replaced the job group that Spark set for the run.
    """
    query_id = local_property("sql.streaming.queryId")
    batch_id = local_property("streaming.sql.batchId")
    if query_id is None or batch_id is None:
        return None
    run_id = local_property("spark.jobGroup.id") or ""
    try:
        UUID(run_id)
    except ValueError:
        raise ValueError(
            f"the Spark job group of streaming query {query_id} is `{run_id}`, expected the run id"
            " that Spark sets: do not call setJobGroup inside foreachBatch"
        ) from None
    return MicroBatch(query_id, run_id, int(batch_id), local_property(_CHECKPOINT_CONF))
