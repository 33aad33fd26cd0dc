"""A sink for `foreachBatch`: for PySpark 4.0, for queries that write to several tables, and for
upserts that look their keys up.

`format("frazil")` is faster and knows the query by itself, on Spark Connect too; prefer it where
one query writes to one table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from committer.errors import SettingsError
from workers.settings.upsert_options import DELETES, KEYS
from workers.streams.wanted_deletes import looks_up

_QUERY_ID = "sql.streaming.queryId"
_CHECKPOINT, _NAME = "checkpointLocation", "queryName"


def sink(
    table: str, producer: str | None = None, sink: str = "", **options: str
) -> Callable[[Any, int], None]:
    """Return a function for `foreachBatch` that appends each micro-batch to `table`, once.

    `producer`: the stable name of this query; on Spark Connect it is required, because the query is
    unknown there. Elsewhere it is the query's own id. `sink` distinguishes two writes of one query
    to one table. `options` are those of `format("frazil")`.
    """

    def write(dataframe: Any, batch_id: int) -> None:
        identity = _identity(dataframe, batch_id, producer)
        given = {"table": table, "sink": sink, **identity, **options}
        if not by_position:
            by_position.append(looks_up({"table": table, **options}))
        if by_position[0]:
            _upsert(dataframe, {**given, DELETES: "positions"})
        else:
            _append(dataframe, {**given, DELETES: "equality"} if is_upsert else given)

    is_upsert = any(name.lower() == KEYS for name in options)
    # The table is asked once: a query keeps its kind of deletes until it is started again. A list,
    # as Spark Connect pickles the function.
    by_position: list[bool] = []
    return write


def _append(dataframe: Any, options: Mapping[str, str]) -> None:
    """Append. Spark shows the function's error below its traceback, so the message goes above."""
    from pyspark.errors import PySparkException

    from workers.spark.message_first import message_first
    from workers.spark.task_error import own_error

    try:
        dataframe.write.format("frazil").mode("append").options(**options).save()
    except PySparkException as error:
        own = own_error(error)
        if own is None:
            raise
        with message_first():
            raise own from None


def _upsert(dataframe: Any, options: Mapping[str, str]) -> None:
    from workers.settings.options import parse_options
    from workers.settings.session_settings import with_session_settings
    from workers.sink.identity import read_micro_batch
    from workers.streams.position_upserts import upsert_micro_batch

    parsed = parse_options(with_session_settings(options), streaming=False)
    context = context_of(dataframe)
    micro_batch = None if context is None else read_micro_batch(context.getLocalProperty)
    upsert_micro_batch(dataframe, parsed, micro_batch)


def _identity(dataframe: Any, batch_id: int, producer: str | None) -> dict[str, str]:
    """Return the options that say whose epoch this is, and what the query is called. On classic
    Spark the tasks know it themselves.
    """
    context = context_of(dataframe)
    query_id = context.getLocalProperty(_QUERY_ID) if context is not None else None
    known = {} if query_id is None else _known(context, query_id)
    if producer is not None:
        known.pop(_CHECKPOINT, None)
        return {"producer": producer, "epoch": str(batch_id), **known}
    if query_id is None:
        raise SettingsError(
            "frazil.spark.sink: producer= is needed here (Spark Connect, or a call outside a"
            " streaming query), because nothing else tells which query writes"
        )
    return known


def context_of(dataframe: Any) -> Any:
    """Return the SparkContext; None on Spark Connect."""
    from pyspark.errors import PySparkException

    try:
        return dataframe.sparkSession.sparkContext
    except (AttributeError, PySparkException):
        return None


def _known(context: Any, query_id: str) -> dict[str, str]:
    """Ask the JVM where the query keeps its checkpoint, and its name if it has one; return nothing
    if the JVM does not answer that.

    The micro-batch runs in a clone of the user's session, which does not know the query.
    """
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it ships none
    from pyspark.sql import SparkSession

    try:
        session = SparkSession._instantiatedSession
        uuid = context._jvm.java.util.UUID.fromString(query_id)
        query = session._jsparkSession.streams().get(uuid)
        checkpoint, name = query.streamingQuery().resolvedCheckpointRoot(), query.name()
    except (AttributeError, Py4JError):
        return {}
    return {_CHECKPOINT: str(checkpoint), **({} if name is None else {_NAME: str(name)})}
