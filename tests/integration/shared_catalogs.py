"""The catalogs that Frazil, Iceberg Java and PyIceberg share in tests: a description of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.builders.jars import (
    hive_client,
    iceberg_aws_jars,
    iceberg_jars,
    iceberg_postgres_jars,
)
from tests.support.integration.java_engine import JavaCatalog
from tests.support.servers.dynamodb_server import CREDENTIALS, REGION
from tests.support.servers.postgres_server import USER

Fixture = Callable[[str], Any]
_HEARTBEAT = "hadoop.iceberg.hive.lock-heartbeat-interval-ms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """How each client is told of a catalog.

    `properties`: for Frazil, and as they are for PyIceberg. `java`: for Spark, without the
    warehouse. `variables`: of the environment of all processes.
    """

    properties: Mapping[str, str]
    java: JavaCatalog
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedCatalog:
    """`start`: starts the catalog's server; it is given pytest's fixtures by name.

    `has_pyiceberg`: whether PyIceberg has a client; else it reads by the metadata file alone.
    `takes_turns`: Java's own swap is not atomic there, so no other writer may commit meanwhile.
    `frazils_tables`: properties of the tables that Frazil creates.
    """

    start: Callable[[Fixture], Clients]
    has_pyiceberg: bool = True
    takes_turns: bool = False
    frazils_tables: Mapping[str, str] = field(default_factory=dict)


def _rest(fixture: Fixture) -> Clients:
    properties = {"type": "rest", "uri": fixture("rest_server").url}
    return Clients(properties=properties, java=JavaCatalog(iceberg_jars(), properties))


def _postgresql(fixture: Fixture) -> Clients:
    server = fixture("postgres_server")
    database = server.new_database()
    uri = server.uri(database).replace("postgresql:", "postgresql+psycopg:")
    java = {
        "type": "jdbc",
        "uri": f"jdbc:postgresql://127.0.0.1:{server.port}/{database}",
        "jdbc.user": USER,
        "jdbc.schema-version": "V1",
    }
    return Clients(
        properties={"type": "sql", "uri": uri}, java=JavaCatalog(iceberg_postgres_jars(), java)
    )


def _glue(fixture: Fixture) -> Clients:
    account, s3 = fixture("moto_server").new_account(), fixture("s3_server")
    places = {
        "glue.endpoint": account.endpoint_url,
        "client.region": REGION,
        "s3.region": REGION,
        "s3.endpoint": s3.url,
        "s3.path-style-access": "true",
        "s3.access-key-id": CREDENTIALS["AWS_ACCESS_KEY_ID"],
        "s3.secret-access-key": CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
        "warehouse": f"{s3.new_root()}/warehouse",
    }
    keys = {
        "glue.access-key-id": account.access_key_id,
        "glue.secret-access-key": account.secret_access_key,
    }
    java = {
        "catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog",
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        **places,
    }
    # Java's client of Glue takes its key, which is the account, from the environment alone.
    variables = {
        "AWS_ACCESS_KEY_ID": account.access_key_id,
        "AWS_SECRET_ACCESS_KEY": account.secret_access_key,
    }
    return Clients(
        properties={"type": "glue", **places, **keys},
        java=JavaCatalog(iceberg_aws_jars(), java),
        variables=variables,
    )


def _files(_: Fixture) -> Clients:
    properties = {"type": "hadoop"}
    return Clients(properties=properties, java=JavaCatalog(iceberg_jars(), properties))


def _hive_4(fixture: Fixture) -> Clients:
    """Take the metastore's own client: Spark's, of Hive 2, calls what release 4.0.1 lacks.

    Java's locks are kept alive, as the tests' metastore ends them after seconds.
    """
    properties = {"type": "hive", "uri": fixture("hive_server").uri}
    java = {**properties, _HEARTBEAT: "1000"}
    return Clients(properties=properties, java=JavaCatalog(iceberg_jars(), java, [hive_client()]))


def _hive_2(fixture: Fixture) -> Clients:
    """PyIceberg takes the lock whatever a table says, so Frazil and Java take it, too."""
    properties = {"type": "hive", "uri": fixture("hive_2_server").uri}
    return Clients(properties=properties, java=JavaCatalog(iceberg_jars(), properties))


def _hive_3(fixture: Fixture) -> Clients:
    """Allow that commits are kept apart by the lock alone; Java keeps its own alive, as above."""
    properties = {"type": "hive", "uri": fixture("hive_3_server").uri}
    java = {**properties, _HEARTBEAT: "1000"}
    return Clients(
        properties={**properties, "hive.allow-unfenced-locks": "true"},
        java=JavaCatalog(iceberg_jars(), java),
    )


SHARED_CATALOGS = {
    "rest": SharedCatalog(start=_rest),
    "postgresql": SharedCatalog(start=_postgresql),
    "glue": SharedCatalog(start=_glue),
    "hive-4.0.1": SharedCatalog(
        start=_hive_4, has_pyiceberg=False, frazils_tables={"engine.hive.lock-enabled": "false"}
    ),
    "hive-3.1.3": SharedCatalog(start=_hive_3),
    "hive-2.3.10": SharedCatalog(start=_hive_2),
    "files": SharedCatalog(start=_files, has_pyiceberg=False, takes_turns=True),
}
