"""Who writes: the micro-batch that a Spark task belongs to, and the attempt it stands for.

Runs on executors: knows Spark's task properties, no request and no I/O.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID, uuid5

# Attempts are derived below this namespace; it is part of what makes two versions agree.
_ATTEMPTS = UUID("9c6f2a51-6c0e-5d0f-9f6c-0a4b8f1d7e33")
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

    def attempt(self, sink: str) -> UUID:
        """The same for all tasks and the commit, without a word between them."""
        return uuid5(_ATTEMPTS, f"{self.run_id}/{sink}/{self.batch_id}")


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
