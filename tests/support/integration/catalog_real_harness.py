"""A Frazil of real processes on any catalog, by the properties that open it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from committer.catalog.catalog_properties import CatalogProperties
from committer.service.process.redis_server import private_server_url
from committer.settings.setting_names import variable_of
from tests.support.integration.real_harness import CATALOG, RealHarness, living_in
from workers.settings.driver_access import access_of_driver
from workers.settings.worker_settings import WorkerSettings


@dataclass(slots=True, kw_only=True)
class CatalogRealHarness(RealHarness):
    """As `RealHarness`; `properties`: of the catalog, as all of Frazil gets them. New tables are in
    their `warehouse`, else in a folder of the harness, where the inbox is, too.
    """

    properties: Mapping[str, str]

    @property
    def warehouse_location(self) -> str:
        return self.properties.get("warehouse") or f"file://{self.warehouse}"

    @property
    def all_properties(self) -> dict[str, str]:
        return {**self.properties, "warehouse": self.warehouse_location}

    @property
    def settings(self) -> WorkerSettings:
        catalog = CatalogProperties(CATALOG, self.all_properties)
        return WorkerSettings(
            catalog=catalog,
            inbox=f"file://{self.folder}/requests",
            queue_url=private_server_url(self.folder / "queue"),
            access=access_of_driver(catalog, {}),
        )

    def environment(self) -> dict[str, str]:
        named = self.all_properties.items()
        return {
            **RealHarness.environment(self),
            **{variable_of(f"catalog.{name}"): value for name, value in named},
            **self.variables,
        }

    def is_committing(self) -> Callable[[], bool]:
        """Return a question: has a commit landed since it was made?"""
        before = len(self.events("commit.landed"))
        return lambda: len(self.events("commit.landed")) > before

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run `frazil` with the settings of the committer."""
        return subprocess.run(
            [sys.executable, "-m", "committer", *words],
            env=self.environment(),
            capture_output=True,
            text=True,
        )


@contextmanager
def catalog_real_harness(
    properties: Mapping[str, str], **variables: str
) -> Iterator[CatalogRealHarness]:
    """Start a harness with a queue server and no committer yet. `variables`: more settings."""
    with living_in(
        lambda folder: CatalogRealHarness(folder, variables, properties=properties)
    ) as harness:
        yield harness
