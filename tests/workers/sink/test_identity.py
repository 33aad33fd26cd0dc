from __future__ import annotations

import pytest

from workers.sink.identity import MicroBatch, read_micro_batch

QUERY = "df132885-b407-4bbf-bb0d-d155b4511199"
RUN = "54391b06-40ec-4db7-afec-7a4b481a1c67"
PROPERTIES = {
    "sql.streaming.queryId": QUERY,
    "spark.jobGroup.id": RUN,
    "streaming.sql.batchId": "7",
}


def test_a_task_of_a_streaming_query_knows_its_micro_batch() -> None:
    assert read_micro_batch(PROPERTIES.get) == MicroBatch(QUERY, RUN, 7)


def test_a_task_of_a_batch_job_has_none() -> None:
    assert read_micro_batch({"spark.jobGroup.id": "mine"}.get) is None


def test_a_replaced_job_group_is_refused_because_the_run_is_not_known_any_more() -> None:
    with pytest.raises(ValueError, match="do not call setJobGroup"):
        read_micro_batch({**PROPERTIES, "spark.jobGroup.id": "mine"}.get)


def test_a_nonce_is_one_of_run_sink_and_batch() -> None:
    nonce = MicroBatch(QUERY, RUN, 7).nonce("")
    assert nonce == MicroBatch(QUERY, RUN, 7, "/checkpoints").nonce("")
    others = {
        MicroBatch(QUERY, QUERY, 7).nonce(""),
        MicroBatch(QUERY, RUN, 8).nonce(""),
        MicroBatch(QUERY, RUN, 7).nonce("side"),
        nonce,
    }
    assert len(others) == 4


def test_nonces_are_the_same_in_every_version() -> None:
    assert str(MicroBatch(QUERY, RUN, 7).nonce("")) == "a903dde7-dd34-5745-86f2-60be62734392"
