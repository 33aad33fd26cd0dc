"""Two installations, each with an inbox, a catalog and a committer of its own, on one database of
one queue server: neither notices the other. A committer with a copy of an inbox is refused by name.
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pytest

from committer.ports.queue import SHARDS
from tests.support.integration.exactness import check_exactly_once
from tests.support.integration.real_harness import RealHarness, living_in, until
from tests.support.integration.traffic import producers
from tests.support.servers.queue_servers import tcp_server

pytestmark = [pytest.mark.server, pytest.mark.slow, pytest.mark.timeout(240)]

TABLES = ("db.one", "db.two", "db.three", "db.four")
EPOCHS = 5
# A request that only a listing finds waits at least this long: none does here.
SETTINGS = {
    "FRAZIL_SERVICE__RECONCILE_AGE_S": "600",
    "FRAZIL_SERVICE__LEASE_S": "5",
    "FRAZIL_COMMIT__MIN_INTERVAL_MS": "50",
}


class GuestHarness(RealHarness):
    """A harness on a queue server that others use, too."""

    def start_queue(self) -> None:
        """Do nothing: it runs already."""


@contextmanager
def two_installations() -> Iterator[tuple[RealHarness, RealHarness]]:
    with ExitStack() as stack:
        url = stack.enter_context(tcp_server()).url

        def guest(name: str, folder: Path) -> GuestHarness:
            variables = {**SETTINGS, "FRAZIL_QUEUE__CONSUMER": name}
            return GuestHarness(folder, variables, queue_url=url)

        one, two = (
            stack.enter_context(living_in(partial(guest, name))) for name in ("first", "second")
        )
        yield one, two


def shards_of(harness: RealHarness) -> int:
    shards = harness.status().get("shards") or {"owned": 0}
    return int(shards["owned"])


def has_all(harness: RealHarness) -> bool:
    return shards_of(harness) == SHARDS


def names_a_foreign_one(harness: RealHarness) -> bool:
    return "foreign committer" in harness.conditions()


async def test_two_installations_on_one_database_work_side_by_side() -> None:
    with two_installations() as (one, two):
        tables = [(harness, name) for harness in (one, two) for name in TABLES]
        made = [await harness.create_table(name) for harness, name in tables]
        for harness in (one, two):
            await harness.start()
        for harness in (one, two):
            await until(partial(has_all, harness), "all shards")
        for (harness, name), table in zip(tables, made, strict=True):
            async with producers(harness, table, 1, waiting=1) as published:
                await published[0].publish(EPOCHS)
                await until(harness.is_settled, f"an empty inbox after {name}")
                await check_exactly_once(harness, name, published)
        assert [harness.conditions() for harness in (one, two)] == [{}, {}]
        assert [shards_of(harness) for harness in (one, two)] == [SHARDS, SHARDS]


async def test_committer_with_a_copy_of_an_inbox_is_refused_until_it_has_an_identity() -> None:
    with two_installations() as (one, two):
        table = await two.create_table(TABLES[0])
        await one.create_table(TABLES[0])
        await one.start()
        await until(partial(has_all, one), "all shards")
        shutil.copytree(one.folder / "requests", two.folder / "requests", dirs_exist_ok=True)
        await two.start()
        for harness in (one, two):
            await until(partial(names_a_foreign_one, harness), "a condition on both sides")
        for said in (one.conditions()["foreign committer"], two.conditions()["foreign committer"]):
            assert f"`second` (inbox `file://{two.folder}/requests`" in said
            assert f"`first` (inbox `file://{one.folder}/requests`" in said
        assert [shards_of(harness) for harness in (one, two)] == [SHARDS, 0]
        two.signal(signal.SIGTERM)
        (two.folder / "requests" / "installation").unlink()
        await two.start()
        await until(partial(has_all, two), "all shards")
        await until(lambda: one.conditions() == two.conditions() == {}, "no condition")
        async with producers(two, table, 1) as published:
            await published[0].publish(EPOCHS)
            await until(two.is_settled, "an empty inbox")
            await check_exactly_once(two, TABLES[0], published)
