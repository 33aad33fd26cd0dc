"""A table moves from SQLite to DynamoDB under its producers, with a committer on each side."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from committer.catalog.catalog_properties import CatalogProperties
from committer.service.process.redis_server import private_server_url
from tests.support.integration.readers import live_files
from tests.support.integration.real_harness import RealHarness, living_in, until
from tests.support.integration.traffic import RealProducer, all_paths, producers
from tests.support.servers.dynamodb_server import CREDENTIALS, REGION, DynamoDbServer
from workers.settings.worker_settings import WorkerSettings

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.timeout(180)]
NAME = "db.flights"
PRODUCERS = 2


@dataclass(slots=True, kw_only=True)
class DynamoDbRealHarness(RealHarness):
    """As `RealHarness`, on a table of a DynamoDB server, as catalog `prod`."""

    server_url: str
    table_name: str

    @property
    def properties(self) -> dict[str, str]:
        return {
            "type": "dynamodb",
            "dynamodb.table-name": self.table_name,
            "dynamodb.endpoint": self.server_url,
            "client.region": REGION,
        }

    @property
    def settings(self) -> WorkerSettings:
        return WorkerSettings(
            catalog=CatalogProperties("prod", self.properties),
            inbox=f"file://{self.folder}/requests",
            queue_url=private_server_url(self.folder / "queue"),
        )

    def environment(self) -> dict[str, str]:
        return {
            **RealHarness.environment(self),
            "FRAZIL_CATALOG__NAME": "prod",
            "FRAZIL_CATALOG__TYPE": "dynamodb",
            "FRAZIL_CATALOG__DYNAMODB__TABLE_NAME": self.table_name,
            "FRAZIL_CATALOG__DYNAMODB__ENDPOINT": self.server_url,
            "FRAZIL_CATALOG__CLIENT__REGION": REGION,
            **CREDENTIALS,
        }


@contextmanager
def both(server: DynamoDbServer) -> Iterator[tuple[RealHarness, DynamoDbRealHarness]]:
    def build(folder: Path) -> DynamoDbRealHarness:
        return DynamoDbRealHarness(
            folder, server_url=server.url, table_name=server.new_table_name()
        )

    with living_in(RealHarness) as old, living_in(build) as new:
        lines = "\n".join(f"    {name}: {value}" for name, value in new.properties.items())
        (old.folder / ".pyiceberg.yaml").write_text(f"catalog:\n  prod:\n{lines}\n")
        yield old, new


def migrate(old: RealHarness, new: RealHarness) -> str:
    """Run the command as an operator does; return what it says."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "committer", "table", "migrate", NAME, "--to", "prod"),
            *("--to-inbox", new.settings.inbox, "--yes"),
        ],
        cwd=old.folder,
        env={**old.environment(), **CREDENTIALS, "PYICEBERG_HOME": str(old.folder)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.heavy
async def test_rows_of_producers_that_publish_through_the_move_are_there_once(
    dynamodb_server: DynamoDbServer,
) -> None:
    with both(dynamodb_server) as (old, new):
        await old.start()
        await new.start()
        table = await old.create_table(NAME)
        async with producers(old, table, PRODUCERS) as before:
            await asyncio.gather(*(each.publish(3) for each in before))
            await until(old.is_settled, "an empty inbox")
            publishing = [asyncio.create_task(each.publish(20)) for each in before]
            await asyncio.to_thread(migrate, old, new)
            await asyncio.gather(*publishing)
            # They remember the table: a writer that was not told.
            await asyncio.gather(*(each.publish(2) for each in before))
        await until(lambda: _has_moved(old), "the note on the move")
        async with producers(new, table, PRODUCERS) as after:
            for one, earlier in zip(after, before, strict=True):
                one.epochs = earlier.epochs
            await asyncio.gather(*(each.publish(5) for each in after))
            said = await asyncio.to_thread(migrate, old, new)
            assert "carried over: 0 requests" not in said
            assert await old.is_settled()
            await until(new.is_settled, "an empty inbox")
        await _check(old, new, [*before, *after])


async def _has_moved(old: RealHarness) -> bool:
    conditions = await asyncio.to_thread(old.conditions)
    return any("has moved to catalog `prod`" in one for one in conditions.values())


async def _check(old: RealHarness, new: RealHarness, published: list[RealProducer]) -> None:
    moved = await new.load(NAME)
    assert sorted(file.path for file in live_files(moved, old.read)) == all_paths(published)
    assert await old.quarantined() == []
    assert await new.quarantined() == []
