"""Asks a REST catalog, on a table of its own, whether it checks what a commit requires."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from uuid import UUID

from committer.catalog.rest.client.rest_answer import CLOCK_AHEAD_S_MAX, Answer
from committer.catalog.rest.client.rest_client import RestClient
from committer.catalog.rest.client.rest_paths import identifier_json
from committer.errors import AccessError, SettingsError
from committer.iceberg.updates.metadata_update_json import print_requirement
from committer.iceberg.updates.requirement import (
    AssertRefSnapshotId,
    AssertTableUUID,
    Requirement,
)
from committer.ports.world import World
from committer.request.table_identifier import TableIdentifier

_NESSIE = "nessie.is-nessie-catalog"
_SCHEMA = {
    "type": "struct",
    "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}],
}
# A requirement that no new table fulfills.
_STALE: Sequence[Requirement] = (
    AssertRefSnapshotId("main", 1),
    AssertTableUUID(UUID("00000000-0000-4000-8000-000000000000")),
)


async def probe(client: RestClient, world: World, *, transactions: bool = False) -> None:
    """Make a table in a namespace of its own, commit to it under conditions that do not hold, and
    remove both. `transactions`: also by the endpoint that changes several tables. Errors:
    `SettingsError` where a commit passes, or where the probe lacks a right.
    """
    if client.properties.get(_NESSIE, "").lower() == "true":
        raise SettingsError(
            "catalog uri: Nessie shows the newest snapshot of a table only, so it could not be"
            " found out whether a commit has landed; use a catalog that keeps the history"
        )
    identifier = TableIdentifier((f"frazil_probe_{world.uuid().hex}",), "probe")
    paths = client.paths
    try:
        body = {"namespace": list(identifier.namespace), "properties": {}}
        made = await client.change("POST", paths.namespaces(), body)
        made.require_success()
    except AccessError as error:
        raise SettingsError(
            f"catalog uri: the probe makes and removes a namespace of its own: {error}"
        ) from error
    try:
        _check_clock(made)
        await _probe_table(client, identifier, transactions=transactions)
    finally:
        await client.change("DELETE", paths.namespace(identifier.namespace))


def _check_clock(answer: Answer) -> None:
    if answer.clock_ahead_s > CLOCK_AHEAD_S_MAX:
        raise SettingsError(
            f"catalog uri: this machine's clock is {answer.clock_ahead_s:.0f} s ahead of the"
            " catalog's, which may refuse every commit for its time: set the clock"
        )


async def _probe_table(
    client: RestClient, identifier: TableIdentifier, *, transactions: bool
) -> None:
    paths = client.paths
    places = [paths.table(identifier), *([paths.transactions()] if transactions else [])]
    body = {"name": identifier.name, "schema": _SCHEMA}
    created = await client.change("POST", paths.tables(identifier.namespace), body)
    created.require_success()
    try:
        for requirement, place in product(_STALE, places):
            answer = await _commit(client, identifier, requirement, place)
            if answer.is_success:
                kind = print_requirement(requirement)["type"]
                raise SettingsError(
                    f"catalog uri: this REST catalog commits although `{kind}` does not hold, so"
                    " concurrent commits would be lost"
                )
            if answer.status != 409:
                raise answer.as_error()
    finally:
        purge = {"purgeRequested": "true"}
        await client.change("DELETE", paths.table(identifier), query=purge)


async def _commit(
    client: RestClient, identifier: TableIdentifier, requirement: Requirement, place: str
) -> Answer:
    change = {
        "identifier": identifier_json(identifier),
        "requirements": [print_requirement(requirement)],
        "updates": [{"action": "set-properties", "updates": {"frazil.probe": "passed"}}],
    }
    is_of_table = place == client.paths.table(identifier)
    body = change if is_of_table else {"table-changes": [change]}
    return await client.change("POST", place, body)
