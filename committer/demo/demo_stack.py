"""Everything that runs during the demo, below one folder: queue server, committer, Spark.

Other programs' settings are left out, so that the demo is the same everywhere and touches nothing
but its folder.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

from committer.demo.demo_catalog import variables_of
from committer.demo.demo_options import DemoOptions, make_home, queue_folder
from committer.demo.demo_table import LATEST, TABLE
from committer.demo.programs.processes import ChildProcess, start
from committer.demo.writers.application_plan import (
    ApplicationPlan,
    BatchPlan,
    ProcessPlan,
    deal,
    plan_streams,
    print_plan,
    spark_confs,
)
from committer.demo.writers.flight_changes import CHANGE_COLUMNS, ChangeInput
from committer.demo.writers.flights import spark_schema
from committer.service.process.redis_server import start_redis_server
from committer.settings.service_settings import Settings, load_settings
from workers.spark.java import find_java_home

_FOREIGN_VARIABLES = ("FRAZIL_", "SPARK_", "PYSPARK_")
_GRACE_S = 12.0
# The compaction begins after one in so many upserts, so that upserts go on beside it.
_PART_BEFORE_COMPACTION = 4
_COMMITTER_VARIABLES = {
    "FRAZIL_SERVICE__HTTP_PORT": "0",
    "FRAZIL_SERVICE__LOG_FORMAT": "json",
    "FRAZIL_SERVICE__LOG_LEVEL": "debug",  # tells of each request that lands
    "FRAZIL_SERVICE__DRAIN_TIMEOUT_S": "8",
    # The second act changes rows, and signs nothing, in a folder that the umask may share.
    "FRAZIL_SECURITY__UNSIGNED_OPERATIONS": "all",
}


class _Common(TypedDict):
    name: str
    events: str
    spark_confs: dict[str, str]


@dataclass(slots=True)
class DemoStack:
    """The parts of one run."""

    options: DemoOptions
    settings: Settings
    java_home: Path
    children: list[ChildProcess] = field(default_factory=list)

    @property
    def input_folder(self) -> Path:
        return self.options.home / "input"

    @property
    def changes_folder(self) -> Path:
        return self.options.home / "changes"

    @property
    def logs(self) -> Path:
        return self.options.home / "logs"

    async def start_committer(self, name: str = "committer") -> ChildProcess:
        command = [sys.executable, "-m", "committer", "serve"]
        environment = os.environ | _COMMITTER_VARIABLES
        return await self._start(name, command, environment)

    async def start_applications(self) -> list[ChildProcess]:
        """Start all applications at once: most of a start is waiting for a single core."""
        home = self.options.home
        streams = plan_streams(self.options.streams, self.input_folder, home / "checkpoints")
        groups = deal(streams, self.options.applications)
        started = []
        for number, group in enumerate(groups, start=1):
            plan = ApplicationPlan(
                table=str(TABLE),
                schema=spark_schema(),
                streams=group,
                **self._common(f"spark-{number}"),
            )
            started.append(await self._start_spark("application", plan))
        return started

    async def start_changes(self, changes: ChangeInput) -> list[ChildProcess]:
        """Start the second act's applications: all streams of changes, and a batch beside them."""
        checkpoints = self.options.home / "checkpoints" / "changes"
        streams = plan_streams(self.options.streams, self.changes_folder, checkpoints)
        upserts = ApplicationPlan(
            table=str(LATEST),
            schema=spark_schema(CHANGE_COLUMNS),
            streams=tuple(streams),
            upserts=True,
            **self._common("spark-changes"),
        )
        batch = BatchPlan(
            table=str(LATEST),
            input=str(self.changes_folder),
            first_correction=changes.first_correction,
            snapshots_before=changes.micro_batches // _PART_BEFORE_COMPACTION,
            **self._common("spark-batch"),
        )
        return [
            await self._start_spark("application", upserts),
            await self._start_spark("batch_application", batch),
        ]

    def _common(self, name: str) -> _Common:
        """Return what every application is told."""
        return {
            "name": name,
            "events": str(self.logs / f"{name}.jsonl"),
            "spark_confs": spark_confs(self._spark_folder),
        }

    @property
    def _spark_folder(self) -> Path:
        return self.options.home / "spark"

    async def _start_spark(self, module: str, plan: ProcessPlan) -> ChildProcess:
        self._spark_folder.mkdir(exist_ok=True)
        environment = os.environ | {
            "JAVA_HOME": str(self.java_home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "TMPDIR": str(self._spark_folder),
        }
        program = f"committer.demo.writers.{module}"
        command = [sys.executable, "-m", program, print_plan(plan)]
        return await self._start(plan.name, command, environment)

    async def _start(
        self, name: str, command: list[str], environment: dict[str, str]
    ) -> ChildProcess:
        child = await start(name, command, log=self.logs / f"{name}.log", environment=environment)
        self.children.append(child)
        return child

    async def stop(self) -> None:
        """End all that still runs, at one time."""
        await asyncio.gather(*(child.stop(_GRACE_S) for child in self.children))


@asynccontextmanager
async def open_stack(options: DemoOptions) -> AsyncIterator[DemoStack]:
    """Open a folder, a queue server and a Java; on the way out nothing is left running.

    Errors: `SettingsError` saying what is missing.
    """
    make_home(options.home)
    with _clean_environment(options), _queue(options) as queue_url:
        os.environ["FRAZIL_QUEUE__URL"] = queue_url
        java_home = await asyncio.to_thread(find_java_home, options.home / "java")
        stack = DemoStack(options, load_settings(), java_home)
        try:
            yield stack
        finally:
            await stack.stop()


@contextmanager
def _clean_environment(options: DemoOptions) -> Iterator[None]:
    """Keep only our own settings, here and in the processes that are started."""
    before = dict(os.environ)
    for name in before:
        if name.startswith(_FOREIGN_VARIABLES):
            del os.environ[name]
    os.environ["FRAZIL_HOME"] = str(options.home)
    if options.catalog is not None:
        os.environ.update(variables_of(options.catalog))
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _queue(options: DemoOptions) -> Iterator[str]:
    """Yield the URL of the server that the user named, or of a private one."""
    if options.redis_url is not None:
        yield options.redis_url
        return
    with _queue_folder(options.home) as folder:
        server = start_redis_server(folder)
        try:
            yield server.url
        finally:
            server.stop()


@contextmanager
def _queue_folder(home: Path) -> Iterator[Path]:
    folder = queue_folder(home)
    if folder is not None:
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="frazil-", dir="/tmp") as short:
        yield Path(short)
