"""Warnings of a driver come once in a while, and say how many were held back."""

from __future__ import annotations

import logging
from typing import cast

import pytest

from committer.ports.world import World
from workers.requests.sparse_log import PERIOD_S, SparseLog


class Clock:
    now_s = 100.0

    def monotonic_s(self) -> float:
        return self.now_s


@pytest.mark.thorough
def test_each_kind_of_warning_is_written_once_in_a_period(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    log = SparseLog(logging.getLogger("frazil.test"), cast(World, clock))
    for _ in range(1_000):
        log.warning("epoch %d was not announced", 1)
    log.warning("the inbox is away")
    clock.now_s += PERIOD_S - 1
    log.warning("epoch %d was not announced", 2)
    clock.now_s += 1
    log.warning("epoch %d was not announced", 3)
    clock.now_s += PERIOD_S
    log.warning("epoch %d was not announced", 4)
    assert [record.getMessage() for record in caplog.records] == [
        "epoch 1 was not announced",
        "the inbox is away",
        "epoch 3 was not announced (1000 more like this were not written)",
        "epoch 4 was not announced",
    ]
