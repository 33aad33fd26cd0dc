"""What a committer waits for hangs, in real processes: the others go on, it is named, and it ends.

The bounds of these tests are deadlines of waiting, not measurements.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from committer.ports.queue import Doorbell
from committer.request.request_format import EncodedRequest, line_digest
from committer.service.process.composition import Parts
from tests.support.builders.request_builders import build_request
from tests.support.cli.commands import Frazil
from tests.support.cli.serving import Serving, serving, wait_until

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]

SCHEMA = ("--schema", "id long, name string, n int")


def publish(frazil: Frazil, epoch: int, name: str = "db.flights") -> None:
    """Publish a request as a producer does."""
    sealed = build_request(frazil.load(name), epoch=epoch)

    async def work(parts: Parts) -> None:
        await parts.inbox.put(sealed)
        if parts.queue is not None:
            await parts.queue.announce((_doorbell(sealed),))

    frazil.with_parts(work)


def _doorbell(sealed: EncodedRequest) -> Doorbell:
    request, digest = sealed.request, line_digest(sealed.content)
    return Doorbell(request.table_uuid, request.inbox_key, digest, sealed.content, None)


def commits(frazil: Frazil, name: str = "db.flights") -> int:
    return len(frazil.load(name).metadata.snapshots)


def status(service: Serving) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(service.ask("/status"))
    return found


@contextmanager
def full_pipe() -> Iterator[tuple[int, int]]:
    """Yield both ends of a pipe that takes no further byte until it is read."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(write, bytes(4096))
    os.set_blocking(write, True)
    yield read, write
    os.close(read)
    os.close(write)


def test_a_log_that_no_process_reads_holds_up_neither_commits_nor_the_end(
    tmp_path: Path, frazil: Frazil
) -> None:
    assert frazil("table", "create", "db.flights", *SCHEMA).code == 0
    settings = {"FRAZIL_QUEUE__URL": "none", "FRAZIL_SERVICE__RECONCILE_INTERVAL_S": "1"}
    with (
        full_pipe() as (_, write),
        serving(tmp_path, settings, stderr=write) as service,
    ):
        service.wait_until_ready()
        publish(frazil, 0)
        wait_until(lambda: commits(frazil) == 1, "the request has landed")
        assert json.loads(service.ask("/livez"))["status"] == "ok"
        assert b"frazil_log_dropped_lines_total 0.0" in service.ask("/metrics")
        assert service.end(signal.SIGTERM) == 0
