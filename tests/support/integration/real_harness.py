"""A whole Frazil of real processes in a folder of its own, and the faults that it may get.

`python -m committer serve`, a private Valkey, a SQLite catalog and local folders, as `make demo`
has them. All processes started here end with the `with` block, however that is left.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar
from uuid import uuid4

from committer.backends.catalog_kinds import open_catalog
from committer.backends.storage_schemes import open_storage
from committer.catalog.catalog_properties import CatalogProperties
from committer.iceberg.metadata.table_metadata import TableMetadata, new_table_metadata
from committer.iceberg.schema.partition_spec import PartitionField, PartitionSpec
from committer.iceberg.schema.schema import Schema
from committer.iceberg.schema.sort_order import UNSORTED
from committer.iceberg.values.locations import metadata_file_location, metadata_folder
from committer.iceberg.values.transforms import parse_transform
from committer.iceberg.values.types import LongType, NestedField, StringType
from committer.ports.catalog import Catalog
from committer.ports.pointer_swap import LoadedTable
from committer.ports.storage import Storage
from committer.queue.redis_stream import RedisQueue
from committer.real_world import RealWorld
from committer.request.table_identifier import TableIdentifier
from committer.service.process.redis_server import (
    RedisServer,
    private_server_url,
    start_redis_server,
)
from committer.storage.disk.local import LocalStorage
from committer.storage.inbox.inbox import Inbox, Quarantine, QuarantineRecord
from committer.storage.inbox.inbox_identity import InboxIdentity
from tests.support.servers.free_port import free_port
from workers.settings.worker_settings import WorkerSettings

ROOT = Path(__file__).parents[3]
CATALOG = "frazil"
_START_S_MAX = 60.0
_POLL_S = 0.02


async def until(
    holds: Callable[[], bool] | Callable[[], Awaitable[bool]],
    what: str,
    *,
    timeout_s: float = 60.0,
    poll_s: float = _POLL_S,
) -> None:
    """Return as soon as it holds. Errors: `TimeoutError` saying what did not come."""
    end_s = time.monotonic() + timeout_s
    while True:
        answer = holds()
        if answer if isinstance(answer, bool) else await answer:
            return
        if time.monotonic() > end_s:
            raise TimeoutError(f"within {timeout_s:g} s not seen: {what}")
        await asyncio.sleep(poll_s)


def local_queue(url: str, inbox: str, consumer: str, *, answer_s_max: float = 5.0) -> RedisQueue:
    """Open a client of the queue of an inbox on this machine."""
    identity = InboxIdentity(LocalStorage(), inbox, RealWorld())
    return RedisQueue(url, identity=identity, consumer=consumer, answer_s_max=answer_s_max)


class Process(Protocol):
    """The part of `subprocess.Popen` that is used of a process."""

    @property
    def pid(self) -> int: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, number: signal.Signals) -> None: ...

    def kill(self) -> None: ...


@dataclass(slots=True)
class RealHarness:
    """Folders and settings that outlive every process, and the processes that run now.

    `program`: what Python runs as the committer. `queue_url`: of the queue's server, if that is not
    the private one.
    """

    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    program: Sequence[str] = ("-m", "committer", "serve")
    port: int = field(default_factory=free_port)
    queue_url: str = ""
    server: RedisServer | None = None
    committer: Process | None = None

    @property
    def catalog_file(self) -> Path:
        return self.folder / "catalog.db"

    @property
    def warehouse(self) -> Path:
        return self.folder / "warehouse"

    @property
    def warehouse_location(self) -> str:
        return f"file://{self.warehouse}"

    @property
    def log_file(self) -> Path:
        return self.folder / "committer.log"

    @property
    def settings(self) -> WorkerSettings:
        """How writers find this harness."""
        return WorkerSettings(
            catalog=CatalogProperties(CATALOG, {"uri": f"sqlite:///{self.catalog_file}"}),
            inbox=f"file://{self.folder}/requests",
            queue_url=self.queue_url or private_server_url(self.folder / "queue"),
        )

    def environment(self) -> dict[str, str]:
        """Return the environment variables of a process of this harness."""
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("FRAZIL_")}
        return inherited | {
            "FRAZIL_HOME": str(self.folder),
            "FRAZIL_QUEUE__URL": self.settings.queue_url,
            "FRAZIL_QUEUE__CONSUMER": "committer",
            "FRAZIL_QUEUE__RECLAIM_IDLE_S": "2",
            "FRAZIL_SERVICE__HTTP_PORT": str(self.port),
            "FRAZIL_SERVICE__LOG_FORMAT": "json",
            "FRAZIL_SERVICE__RECONCILE_INTERVAL_S": "1",
            "FRAZIL_SERVICE__RECONCILE_AGE_S": "1",
            "PYTHONPATH": str(ROOT),
            **self._power(),
            **self.variables,
        }

    def _power(self) -> dict[str, str]:
        """Let unsigned requests do all, also where the queue is elsewhere than in the home."""
        return {"FRAZIL_SECURITY__UNSIGNED_OPERATIONS": "all"} if self.queue_url else {}

    # --- The committer ---------------------------------------------------------------------------

    def launch(self) -> None:
        """Start the committer; it may take its time to be ready."""
        with self.log_file.open("ab") as log:
            self.committer = subprocess.Popen(
                [sys.executable, *self.program],
                cwd=self.folder,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    async def start(self) -> None:
        """Start the committer and wait until it says that it is ready."""
        self.launch()
        try:
            await until(self.is_ready, "a committer that is ready", timeout_s=_START_S_MAX)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; it says {self.readiness()}") from error

    async def is_ready(self) -> bool:
        """Ask for readiness in a thread: the loop may have proxies to serve meanwhile."""
        assert self.committer is not None
        if self.committer.poll() is not None:
            raise AssertionError(f"the committer ended: {self.log_file.read_text()[-2000:]}")
        status, _ = await asyncio.to_thread(self.readiness)
        return status == 200

    async def is_healthy(self) -> bool:
        """Return whether the committer is ready, and no component is degraded."""
        return await self.is_ready() and not await asyncio.to_thread(self.conditions)

    def readiness(self) -> tuple[int, dict[str, Any]]:
        """Return status and body of `/readyz`; status 0 while no committer listens."""
        return self._ask("readyz")

    def status(self) -> dict[str, Any]:
        """Return the answer of `/status`; empty while no committer listens."""
        return self._ask("status")[1]

    def conditions(self) -> dict[str, str]:
        """Return all conditions, as `/status` has them; none while no committer listens."""
        found: dict[str, str] = self.status().get("conditions", {})
        return found

    def _ask(self, path: str) -> tuple[int, dict[str, Any]]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{path}", timeout=5) as it:
                return it.status, json.load(it)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)
        except OSError:
            return 0, {}

    def signal(self, number: signal.Signals) -> None:
        """Send the committer a signal: SIGKILL, SIGSTOP, SIGCONT, SIGTERM."""
        assert self.committer is not None
        self.committer.send_signal(number)
        if number in (signal.SIGKILL, signal.SIGTERM):
            self.committer.wait(60)

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return the events of this name that the committers have logged so far."""
        if not self.log_file.exists():
            return []
        lines = self.log_file.read_text(errors="replace").splitlines()
        parsed = [_parse(line) for line in lines if name in line]
        return [line for line in parsed if line.get("event") == name]

    def logged(self, level: str) -> list[dict[str, Any]]:
        """Return the events of this level that the committers have logged so far."""
        lines = self.log_file.read_text(errors="replace").splitlines()
        return [parsed for parsed in map(_parse, lines) if parsed.get("level") == level]

    # --- The queue's server ----------------------------------------------------------------------

    def start_queue(self) -> None:
        self.server = start_redis_server(self.folder / "queue")

    def queue(self, consumer: str, *, answer_s_max: float = 5.0) -> RedisQueue:
        """Open a client of the queue; its caller closes it."""
        url, inbox = self.settings.queue_url, self.settings.inbox
        return local_queue(url, inbox, consumer, answer_s_max=answer_s_max)

    def identity(self) -> InboxIdentity:
        """Return that of the inbox."""
        return InboxIdentity(LocalStorage(), self.settings.inbox, RealWorld())

    def kill_queue(self) -> None:
        assert self.server is not None and self.server.process is not None
        self.server.process.kill()
        self.server.process.wait()

    # --- Durable state ---------------------------------------------------------------------------

    @asynccontextmanager
    async def storage(self) -> AsyncIterator[Storage]:
        storage = open_storage(self.settings.catalog, RealWorld())
        try:
            yield storage
        finally:
            await storage.close()

    @asynccontextmanager
    async def catalog(self) -> AsyncIterator[Catalog]:
        """Open the catalog; create it if there is none."""
        async with self.storage() as storage:
            catalog = await open_catalog(self.settings.catalog, storage, RealWorld(), create=True)
            try:
                yield catalog
            finally:
                await catalog.close()

    async def create_table(
        self,
        name: str,
        *,
        format_version: int = 2,
        properties: Mapping[str, str] | None = None,
    ) -> LoadedTable:
        """Create a table of (id, carrier), partitioned by bucket(2, carrier)."""
        identifier = TableIdentifier.parse(name)
        location = "/".join((self.warehouse_location, *identifier.namespace, identifier.name))
        metadata = flights(location, format_version=format_version, properties=properties)
        first = metadata_file_location(metadata_folder(location, {}), 0, uuid4())
        table = LoadedTable(identifier, metadata, first)
        async with self.catalog() as catalog:
            await catalog.create_namespace(identifier.namespace)
            await catalog.create_table(table)
            # A catalog that chooses locations has put it elsewhere.
            return await catalog.load(identifier)

    async def load(self, name: str) -> LoadedTable:
        async with self.catalog() as catalog:
            return await catalog.load(TableIdentifier.parse(name))

    def read(self, location: str) -> bytes:
        """Return an object of the warehouse, whole; Iceberg Java writes `file:/` for `file:///`."""
        return Path(location.removeprefix("file:")).read_bytes()

    async def outstanding(self) -> list[str]:
        """Return the keys of the requests in the inbox."""
        async with self.storage() as storage:
            return [found.key async for found in Inbox(storage, self.settings.inbox).list()]

    async def is_settled(self) -> bool:
        return not await self.outstanding()

    async def quarantined(self) -> list[QuarantineRecord]:
        async with self.storage() as storage:
            quarantine = Quarantine(storage, self.settings.inbox)
            return [await quarantine.record(found.key) async for found in quarantine.list()]

    def close(self) -> None:
        """End every process, stopped ones too."""
        if self.committer is not None and self.committer.poll() is None:
            self.committer.kill()
            self.committer.wait()
        if self.server is not None:
            self.server.stop()


@contextmanager
def real_harness(**variables: str) -> Iterator[RealHarness]:
    """Start a harness with a queue server and no committer yet. `variables`: more settings."""
    with living_in(lambda folder: RealHarness(folder, variables)) as harness:
        yield harness


_Harness = TypeVar("_Harness", bound=RealHarness)


@contextmanager
def living_in(build: Callable[[Path], _Harness]) -> Iterator[_Harness]:
    """Start a harness in a folder of its own, with a queue server; at the end all is gone."""
    # Not pytest's folder: the path of a unix socket must be short.
    with tempfile.TemporaryDirectory(prefix="frazil-", ignore_cleanup_errors=True) as folder:
        harness = build(Path(folder))
        try:
            harness.start_queue()
            yield harness
        except BaseException:
            _show_end_of(harness.log_file)
            raise
        finally:
            harness.close()


@contextmanager
def replicas(
    harness: RealHarness, count: int, variables: Mapping[str, str] | None = None
) -> Iterator[list[RealHarness]]:
    """Yield committers of one harness, each with a name and a port of its own, and with these
    `variables` as more settings.
    """
    each = [
        replace(
            harness,
            variables={
                **harness.variables,
                **(variables or {}),
                "FRAZIL_QUEUE__CONSUMER": f"committer-{number}",
            },
            port=free_port(),
            server=None,
        )
        for number in range(count)
    ]
    try:
        yield each
    finally:
        for replica in each:
            replica.close()


def flights(
    location: str, *, format_version: int, properties: Mapping[str, str] | None = None
) -> TableMetadata:
    """Return the first metadata of a table of (id, carrier), partitioned by bucket(2, carrier)."""
    fields = (
        NestedField(1, "id", LongType(), required=False),
        NestedField(2, "carrier", StringType(), required=False),
    )
    bucket = PartitionField((2,), 1000, "carrier_bucket", parse_transform("bucket[2]"))
    return new_table_metadata(
        table_uuid=uuid4(),
        location=location,
        schema=Schema(fields),
        partition_spec=PartitionSpec(0, (bucket,)),
        sort_order=UNSORTED,
        properties=properties or {},
        format_version=format_version,
        now_ms=time.time_ns() // 1_000_000,
    )


def _parse(line: str) -> dict[str, Any]:
    try:
        parsed = json.loads(line)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _show_end_of(log: Path) -> None:
    if log.exists():
        print("the last lines of the committer:", *log.read_text().splitlines()[-25:], sep="\n")
