"""The plan of a Spark application of the demo: its streams, and where everything is."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from committer.demo.writers.flight_replay import stream_folder

# Two of these run on two cores beside everything else: the start counts more than the last percent.
_JAVA_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto"
_SPARK_CONFS = {
    "spark.driver.memory": "640m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.session.timeZone": "UTC",
}


@dataclass(frozen=True, slots=True)
class StreamPlan:
    """One query: its name, where its input is and where Spark keeps its checkpoint."""

    name: str
    folder: str
    checkpoint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessPlan:
    """The plan of any process. `events` is the file that it tells its progress to."""

    name: str
    table: str
    events: str
    spark_confs: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationPlan(ProcessPlan):
    """One process with its queries, appends or upserts."""

    schema: str
    streams: tuple[StreamPlan, ...]
    upserts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPlan(ProcessPlan):
    """The process beside the streams of changes. `input`: the folder of its files.
    `snapshots_before`: how many the table has when it is compacted.
    """

    input: str
    first_correction: int
    snapshots_before: int


def print_plan(plan: ProcessPlan) -> str:
    return json.dumps(asdict(plan))


def parse_plan(text: str) -> ApplicationPlan:
    fields = json.loads(text)
    streams = tuple(StreamPlan(**stream) for stream in fields.pop("streams"))
    return ApplicationPlan(streams=streams, **fields)


def parse_batch_plan(text: str) -> BatchPlan:
    return BatchPlan(**json.loads(text))


def plan_streams(streams: int, folder: Path, checkpoints: Path) -> list[StreamPlan]:
    """Plan all streams of an act, whose input is in `folder`."""
    return [
        StreamPlan(
            name=f"stream-{stream + 1:02d}",
            folder=str(stream_folder(folder, stream)),
            checkpoint=str(checkpoints / f"stream-{stream + 1:02d}"),
        )
        for stream in range(streams)
    ]


def deal(streams: list[StreamPlan], applications: int) -> list[tuple[StreamPlan, ...]]:
    """Deal the streams out to the applications in turn."""
    return [tuple(streams[number::applications]) for number in range(applications)]


def spark_confs(folder: Path) -> dict[str, str]:
    """Return the settings of a small Spark that writes nothing outside `folder`."""
    return {
        **_SPARK_CONFS,
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "spark-warehouse"),
        "spark.driver.extraJavaOptions": f'{_JAVA_OPTIONS} "-Djava.io.tmpdir={folder}"',
    }
