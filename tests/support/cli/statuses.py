"""Committers that say what a test wants, over HTTP, for `frazil status`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from committer.service.process.status_model import InboxStatus, QueueStatus, Status, TableStatus

# A server of the standard library notices its end at its next look.
POLL_S = 0.01


class _Handler(BaseHTTPRequestHandler):
    """Answers `/status` only."""

    def __init__(self, answer: bytes, code: int, *args: object) -> None:
        self._answer, self._code = answer, code
        super().__init__(*args)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        self.send_response(self._code if self.path == "/status" else 404)
        self.end_headers()
        self.wfile.write(self._answer)

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing to stderr."""


@contextmanager
def answering(answer: bytes, code: int = 200) -> Iterator[str]:
    """Serve these bytes as the answer; yield the address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, answer, code)) as server:
        Thread(target=server.serve_forever, args=(POLL_S,), daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def status_of(home: Path, **changed: object) -> Status:
    """Return the status of a healthy committer of this home with two committed tables."""
    status = Status(
        version="1.2.3",
        catalog="frazil",
        now_s=1_800_000_000.0,
        phase="running",
        ready=True,
        conditions={},
        lag_s=0.0,
        inbox=InboxStatus(location=f"file://{home}/requests", requests=2, listed_s=1_799_999_990.0),
        queue=QueueStatus(waiting=5, pending=3),
        quarantine={"table_unknown": 2},
        quarantined={"table_unknown": 1},
        missed_doorbells=0,
        redelivered=0,
        internal_errors={},
        tables=[
            TableStatus(
                table="db.flights",
                lag_s=90.0,
                commits=7,
                requests=70,
                swaps={"committed": 7, "conflict": 4},
                last_commit_s=1_799_999_970.0,
            ),
            TableStatus(table="db.quiet", commits=1),
        ],
    )
    return status.model_copy(update=changed)
