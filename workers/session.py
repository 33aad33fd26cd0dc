"""Configures a Spark session for format `frazil` in one call.

    builder = configure(SparkSession.builder.master("local[2]"), catalog_uri=…, inbox=…)
    configure(spark, queue_url="redis://…")

The settings reach the writers in one of two ways. On a builder they become `FRAZIL_…` variables of
this process, which the JVM and its Python workers on the driver inherit when the session starts. On
a session that runs already, Spark Connect included, the data source is registered with them as
options. Executors need no settings, and no `spark.executorEnv.…`: tasks carry their facts. A writer
on another machine (cluster mode) reads the `FRAZIL_…` variables of that machine.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, TypeVar

from committer.errors import SettingsError
from committer.settings.setting_names import refuse_unknown_options, variable_of
from workers.settings.session_settings import remember_settings
from workers.settings.worker_setting_names import given_settings

# Exactly this value skips a size computation over all columns for every row.
SESSION_CONFS: Mapping[str, str] = {
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
}
_PYTHON = "PYSPARK_PYTHON"
# PySpark 4.0 replaces no data source that it has found by its name.
_IS_THERE = "DATA_SOURCE_ALREADY_EXISTS"


_Target = TypeVar("_Target")


def configure(
    target: _Target,
    *,
    catalog_uri: str | None = None,
    catalog_name: str | None = None,
    inbox: str | None = None,
    queue_url: str | None = None,
    keys: str | None = None,
    home: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> _Target:
    """Configure a `SparkSession.builder` or a running session, and return it.

    Other settings come from the environment or the configuration file. On a builder call it before
    `getOrCreate()`; on a session before a query starts, because a query takes a copy of the
    session's confs. `properties`: further ones of the catalog, by PyIceberg's names
    (`s3.endpoint`, …). Errors: `SettingsError` for a property that there is not.
    """
    plain = {
        "catalog.uri": catalog_uri,
        "catalog.name": catalog_name,
        "inbox": inbox,
        "queue.url": queue_url,
        "security.keys": keys,
        "home": home,
    }
    settings = given_settings(plain, properties)
    refuse_unknown_options(settings)
    if hasattr(target, "getOrCreate"):
        _configure_builder(target, settings)
    else:
        _configure_session(target, settings)
    return target


def _configure_builder(builder: Any, settings: Mapping[str, str]) -> None:
    for name, value in settings.items():
        os.environ[variable_of(name)] = value
    for key, value in SESSION_CONFS.items():
        builder.config(key, value)
    _choose_interpreter(builder)


def _choose_interpreter(builder: Any) -> None:
    """Choose the interpreter on one machine: Spark's own, the first `python3`, may lack packages.

    On a cluster the user names one that exists on all machines.
    """
    master = getattr(builder, "_options", {}).get("spark.master", "")
    if master.startswith("local") and sys.executable:
        os.environ.setdefault(_PYTHON, sys.executable)


def _configure_session(spark: Any, settings: Mapping[str, str]) -> None:
    for key, value in SESSION_CONFS.items():
        spark.conf.set(key, value)
    remember_settings(settings)
    if settings:
        _register(spark, configured_source(settings))


def _register(spark: Any, source: type) -> None:
    from pyspark.errors import PySparkException

    try:
        spark.dataSource.register(source)
    except PySparkException as error:
        if error.getCondition() != _IS_THERE:
            raise
        raise SettingsError(
            "frazil.spark.configure: this release of PySpark takes no settings for a session that"
            " runs (4.1 does): call it on SparkSession.builder, or give the settings as options"
        ) from error


def configured_source(settings: Mapping[str, str]) -> type:
    """Make a data source `frazil` with these settings as options of each write.

    It has no importable name, so Spark ships it by value, with the settings in it.
    """
    from pyspark_frazil import DefaultSource

    return type("ConfiguredSource", (DefaultSource,), {"defaults": dict(settings)})
