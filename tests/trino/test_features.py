"""Tables that Frazil alone has written, one for each feature of the format, read by Trino 476.

Trino knows nothing of format version 3 beyond its rows: what it refuses, or reads otherwise, is
held here as it was measured.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from tests.support.integration.written_features import FEATURES, Feature
from tests.support.integration.written_table import Row, WrittenTable
from tests.support.servers.trino_client import TrinoClient, TrinoError
from tests.support.servers.trino_server import TrinoServer

pytestmark = [pytest.mark.trino, pytest.mark.timeout(600)]

_NO_TYPE = "Cannot convert from Iceberg type '{}'"
REFUSED = {
    "nanoseconds": _NO_TYPE.format("timestamp_ns"),
    "variant": _NO_TYPE.format("variant"),
    "unknown": _NO_TYPE.format("unknown"),
    "geometry": _NO_TYPE.format("geometry"),
    "deletion_vectors": "Unexpected PUFFIN file format",
    "upgraded_to_vectors": "Unexpected PUFFIN file format",
}


@dataclass(frozen=True, slots=True)
class Written:
    """A table of a feature, with its rows, that Trino knows by the feature's name."""

    feature: Feature
    table: WrittenTable
    rows: list[Row]
    trino: TrinoClient

    @property
    def name(self) -> str:
        return f"features.{self.feature.name}"

    def seen(self) -> list[list[Any]]:
        columns = ", ".join(f'"{name}"' for name in self.feature.columns)
        return self.trino.sql(f"SELECT {columns} FROM {self.name}")

    def wanted(self) -> list[list[Any]]:
        return [[printed(row[name]) for name in self.feature.columns] for row in self.rows]


@pytest.fixture(scope="session")
def all_written(
    trino_server: TrinoServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Written]]:
    folder = tmp_path_factory.mktemp("features")
    trino = trino_server.client("rest")
    trino.sql(f"CREATE SCHEMA IF NOT EXISTS features WITH (location = 'file://{folder}/schema')")
    made = {}
    for feature in FEATURES:
        table, rows = feature.build(folder / feature.name)
        file = table.metadata_location.rpartition("/")[2]
        location = table.metadata.location
        trino.sql(
            f"CALL system.register_table('features', '{feature.name}', '{location}', '{file}')"
        )
        made[feature.name] = Written(feature, table, rows, trino)
    yield made
    for name in made:
        trino.sql(f"CALL system.unregister_table('features', '{name}')")


def printed(value: object) -> object:
    """Return a value as Trino's protocol has it."""
    match value:
        case dict():
            return [printed(part) for part in value.values()]
        case list() | tuple():
            return [printed(part) for part in value]
        case bytes():
            return base64.b64encode(value).decode()
        case Decimal() | date():
            return str(value)
        case float() if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        case _:
            return value


READ = [each.name for each in FEATURES if each.name not in (*REFUSED, "defaults")]


@pytest.mark.parametrize("name", READ)
def test_trino_reads_our_rows(all_written: dict[str, Written], name: str) -> None:
    written = all_written[name]
    assert sorted(map(repr, written.seen())) == sorted(map(repr, written.wanted()))


@pytest.mark.parametrize("name", REFUSED)
def test_trino_refuses_what_it_does_not_know(all_written: dict[str, Written], name: str) -> None:
    with pytest.raises(TrinoError, match=REFUSED[name]):
        all_written[name].seen()


def test_trino_reads_null_where_version_3_has_a_default(all_written: dict[str, Written]) -> None:
    written = all_written["defaults"]
    assert written.wanted() == [[1, "dflt", 42], [2, None, 7]]
    assert sorted(written.seen()) == [[1, None, None], [2, None, 7]]


def test_trino_travels_to_our_tags_branches_and_snapshots(all_written: dict[str, Written]) -> None:
    written = all_written["branches"]
    versions = {
        "'first'": [1],
        "'side'": [1, 3],
        "BIGINT '4000'": [1],
        "BIGINT '4001'": [1, 2],
    }
    for version, ids in versions.items():
        query = f"SELECT id FROM {written.name} FOR VERSION AS OF {version} ORDER BY id"
        assert written.trino.column(query) == ids
