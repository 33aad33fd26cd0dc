"""The releases of the Hive metastore that tests start: what each is made of, and its settings.

4.0.1 compares the expected parameter of a change, and lacks the calls of clients of Hive 2. 3.1.3
has these calls and compares nothing. 2.3.10 does both: it is the release that Spark brings along.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.builders.jars import (
    HIVE_METASTORES,
    POSTGRES_DRIVER,
    fetch_jars,
    hive_metastore,
)

_PACKAGE = "org.apache.hadoop.hive.metastore"
_SCRIPTS = "home/scripts/metastore/upgrade/postgres"
# The second one ends the locks that have expired.
_TASKS = ("events.EventCleanerTask", "txn.AcidHouseKeeperService")


@dataclass(frozen=True, slots=True)
class HiveRelease:
    """One release.

    `project`: what Maven fetches, with `schemas`, the scripts of the database in their order.
    `settings`: given the folder that it lives in; they are in the file `site`. `binds`: whether one
    of them says which address it listens at. `of_spark`: its jars are PySpark's.
    """

    name: str
    project: str
    schemas: tuple[str, ...]
    settings: Callable[[Path], Mapping[str, str]]
    site: str = "metastore-site.xml"
    binds: bool = True
    of_spark: bool = False

    def class_path(self) -> tuple[str, ...]:
        """Fetch the jars. Errors: `NotHereError` where there is no Maven to fetch them."""
        folder = hive_metastore(self.project)
        if not self.of_spark:
            return (f"{folder}/*", f"{folder}/home/lib/*")
        import pyspark

        return (
            *map(str, fetch_jars((POSTGRES_DRIVER,))),
            f"{Path(pyspark.__file__).parent}/jars/*",
        )

    def schema(self) -> str:
        """Return the statements that make the tables of the database."""
        scripts = hive_metastore(self.project) / _SCRIPTS
        return "\n".join((scripts / f"{name}.postgres.sql").read_text() for name in self.schemas)


def _settings_4(folder: Path) -> dict[str, str]:
    return {
        "metastore.warehouse.dir": f"file://{folder}/managed",
        "metastore.warehouse.external.dir": f"file://{folder}/warehouse",
        "metastore.thrift.bind.host": "127.0.0.1",
        "metastore.expression.proxy": f"{_PACKAGE}.DefaultPartitionExpressionProxy",
        "metastore.housekeeping.threads.on": "false",
        "metastore.task.threads.always": ",".join(f"{_PACKAGE}.{task}" for task in _TASKS),
        "metastore.txn.store.impl": f"{_PACKAGE}.txn.CompactionTxnHandler",
        # The locks of a killed holder expire within a test.
        "metastore.txn.timeout": "5s",
        "metastore.timedout.txn.reaper.start": "1s",
        "metastore.timedout.txn.reaper.interval": "1s",
    }


def _settings_3(folder: Path) -> dict[str, str]:
    """Return those of 4.0.1, but for the one folder of managed and external tables."""
    return {**_settings_4(folder), "metastore.warehouse.dir": f"file://{folder}/warehouse"}


def _settings_2(folder: Path) -> dict[str, str]:
    """Return settings by their older names. Spark lacks a jar of logging in the background."""
    return {
        "hive.metastore.warehouse.dir": f"file://{folder}/warehouse",
        "datanucleus.connectionPoolingType": "hikaricp",
        "hive.async.log.enabled": "false",
    }


HIVE_4 = HiveRelease("4.0.1", HIVE_METASTORES[0], ("hive-schema-4.0.0",), _settings_4)
HIVE_3 = HiveRelease("3.1.3", HIVE_METASTORES[1], ("hive-schema-3.1.0",), _settings_3, binds=False)
HIVE_2 = HiveRelease(
    "2.3.10",
    HIVE_METASTORES[0],
    (
        "hive-schema-1.2.0",
        "upgrade-1.2.0-to-2.0.0",
        "upgrade-2.0.0-to-2.1.0",
        "upgrade-2.1.0-to-2.2.0",
        "upgrade-2.2.0-to-2.3.0",
    ),
    _settings_2,
    site="hive-site.xml",
    binds=False,
    of_spark=True,
)
