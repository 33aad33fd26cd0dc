"""Commands that several tests of the command line begin with."""

from __future__ import annotations

import io

import pytest

from committer.iceberg.updates.metadata_update import SetProperties, Update
from committer.ports.pointer_swap import LoadedTable
from committer.request.request_format import EncodedRequest
from committer.request.table_identifier import TableIdentifier
from committer.service.admin.table_change import change_table
from committer.service.process.composition import Parts
from tests.support.builders.fixtures import (
    LOCATION_PREFIX,
    expected,
    fixtures_dir,
)
from tests.support.builders.request_builders import build_request
from tests.support.cli.commands import Frazil

COLUMNS = "id long, name string, at timestamptz"


def create(frazil: Frazil, name: str = "db.flights", *more: str) -> None:
    answer = frazil("table", "create", name, "--schema", COLUMNS, *more)
    assert (answer.code, answer.out) == (0, ""), answer


def request(frazil: Frazil, *, epoch: int = 0, producer: str = "query-1") -> EncodedRequest:
    return build_request(frazil.load(), epoch=epoch, producer=producer)


TABLE = TableIdentifier.parse("db.flights")


def set_property(frazil: Frazil, key: str, text: str) -> None:
    async def work(parts: Parts) -> None:
        async def decide(table: LoadedTable) -> tuple[Update, ...]:
            done = table.metadata.properties.get(key) == text
            return () if done else (SetProperties({key: text}),)

        await change_table(parts.catalog, parts.storage, parts.world, TABLE, decide)

    frazil.with_parts(work)


def answer(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text + "\n"))


def bare(name: str) -> tuple[str, ...]:
    """Return the options that read a table of the fixtures where it has been copied to."""
    old, new = LOCATION_PREFIX.rstrip("/"), str(fixtures_dir() / "java")
    file = expected(name)["metadata_location"].replace(old, new)
    return ("--metadata", file, "--rewrite-prefix", f"{old}={new}")
