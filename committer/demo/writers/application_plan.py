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


@dataclass(frozen=True, slots=True)
class ApplicationPlan:
    """One process with its queries. `events` is the file that it tells its progress to."""

    name: str
    table: str
    schema: str
    home: str
    queue_url: str
    events: str
    spark_confs: dict[str, str]
    streams: tuple[StreamPlan, ...]


def print_plan(plan: ApplicationPlan) -> str:
    return json.dumps(asdict(plan))


def parse_plan(text: str) -> ApplicationPlan:
    fields = json.loads(text)
    streams = tuple(StreamPlan(**stream) for stream in fields.pop("streams"))
    return ApplicationPlan(streams=streams, **fields)


def plan_streams(streams: int, home: Path) -> list[StreamPlan]:
    """Plan all streams of the demo."""
    return [
        StreamPlan(
            name=f"stream-{stream + 1:02d}",
            folder=str(stream_folder(home / "input", stream)),
            checkpoint=str(home / "checkpoints" / f"stream-{stream + 1:02d}"),
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
