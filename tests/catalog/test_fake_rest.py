"""The fake REST catalog does what its users rely on: seen by a client that knows nothing of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import ClientSession
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from yarl import URL

from committer.iceberg.metadata.snapshot import Snapshot, print_snapshot
from committer.iceberg.updates.metadata_update_json import print_requirement, print_update
from committer.request.table_identifier import TableIdentifier
from tests.support.builders.table_builders import build_swap, build_table
from tests.support.memory.memory_storage import MemoryStorage
from tests.support.servers.fake_rest import PREFIX, FakeRest
from tests.support.servers.fake_rest_access import (
    REMOTE_SIGNING,
    SigV4Check,
    Vended,
    adls_keys,
    gcs_keys,
    s3_keys,
)
from tests.support.servers.fake_rest_features import Planned

WAREHOUSE = "memory://warehouse"
FLIGHTS = TableIdentifier(("db",), "flights")
TABLE = f"/v1/{PREFIX}/namespaces/db/tables/flights"
TABLES = f"/v1/{PREFIX}/namespaces/db/tables"


class Client:
    """Sends a request and returns the status and the parsed body."""

    def __init__(self, fake: FakeRest, session: ClientSession) -> None:
        self.fake, self._session = fake, session

    async def send(self, method: str, path: str, **more: Any) -> tuple[int, Any]:
        url = URL(self.fake.url + path, encoded=True)
        async with self._session.request(method, url, **more) as answer:
            body = await answer.json(content_type=None) if await answer.read() else None
            return answer.status, body

    async def commit(self, **more: Any) -> int:
        """Commit a property change of the table as it is now."""
        swap = build_swap(self.fake.tables.tables[FLIGHTS])
        status, _ = await self.send("POST", TABLE, json=change(swap), **more)
        return status


def change(swap: Any) -> dict[str, Any]:
    return {
        "requirements": [print_requirement(one) for one in swap.requirements],
        "updates": [print_update(one) for one in swap.updates],
    }


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """Start a fake with the table `db.flights`, and yield a client of it."""
    storage = MemoryStorage()
    async with FakeRest(storage, warehouse=WAREHOUSE) as fake, ClientSession() as session:
        fake.tables.namespaces[("db",)] = {}
        fake.tables.tables[FLIGHTS] = build_table(warehouse=WAREHOUSE)
        yield Client(fake, session)


# --- Tokens and signatures -----------------------------------------------------------------------


async def test_a_token_is_wanted_issued_and_over_at_its_end(client: Client) -> None:
    tokens = client.fake.tokens
    tokens.credential = "id:hush"
    assert (await client.send("GET", TABLE))[0] == 401
    form = {"grant_type": "client_credentials", "client_id": "id", "client_secret": "hush"}
    status, issued = await client.send("POST", "/v1/oauth/tokens", data=form)
    assert (status, issued["expires_in"]) == (200, 3600)
    bearer = {"Authorization": f"Bearer {issued['access_token']}"}
    assert (await client.send("GET", TABLE, headers=bearer))[0] == 200
    client.fake.clock.advance(3600)
    tokens.expired_status = 419
    assert (await client.send("GET", TABLE, headers=bearer))[0] == 419
    assert (tokens.refused, len(tokens.requests)) == (2, 1)


async def test_a_wrong_secret_gets_no_token_and_a_revoked_one_is_refused(client: Client) -> None:
    tokens = client.fake.tokens
    tokens.credential = "id:hush"
    form = {"grant_type": "client_credentials", "client_id": "id", "client_secret": "wrong"}
    assert (await client.send("POST", "/v1/oauth/tokens", data=form))[0] == 401
    status, issued = tokens.issue({**form, "client_secret": "hush"}, "")
    assert status == 200
    tokens.revoke_all()
    bearer = {"Authorization": f"Bearer {issued['access_token']}"}
    assert (await client.send("GET", TABLE, headers=bearer))[0] == 401


@pytest.mark.parametrize(("secret", "status"), [("hush", 200), ("wrong", 403)])
async def test_a_signature_is_computed_again(client: Client, secret: str, status: int) -> None:
    client.fake.features.signing = SigV4Check("key", "hush", "eu-central-1", "glue")
    signed = AWSRequest(method="GET", url=client.fake.url + TABLE)
    SigV4Auth(Credentials("key", secret), "glue", "eu-central-1").add_auth(signed)
    assert (await client.send("GET", TABLE, headers=dict(signed.headers)))[0] == status
    assert (await client.send("GET", TABLE))[0] == 403


# --- Commits -------------------------------------------------------------------------------------


async def test_a_requirement_that_does_not_hold_is_409_and_changes_nothing(client: Client) -> None:
    body = change(build_swap(build_table(warehouse=WAREHOUSE)))
    before = client.fake.tables.tables[FLIGHTS]
    status, error = await client.send("POST", TABLE, json=body)
    assert (status, error["error"]["type"]) == (409, "CommitFailedException")
    assert client.fake.tables.tables[FLIGHTS] == before


def snapshot_of(number: int) -> dict[str, Any]:
    snapshot = Snapshot(
        snapshot_id=number,
        parent_snapshot_id=None if number == 1 else 1,
        sequence_number=1,
        timestamp_ms=1_900_000_000_000,
        manifest_list=f"{WAREHOUSE}/{number}.avro",
        summary={"operation": "append"},
        schema_id=0,
    )
    return {"updates": [{"action": "add-snapshot", "snapshot": print_snapshot(snapshot)}]}


@pytest.mark.parametrize("status", [400, 409])
async def test_a_stale_sequence_number_is_answered_as_the_test_says(
    client: Client, status: int
) -> None:
    client.fake.judgment.stale_status = status
    assert (await client.send("POST", TABLE, json=snapshot_of(1)))[0] == 200
    assert (await client.send("POST", TABLE, json=snapshot_of(2)))[0] == status
    assert client.fake.tables.commits == 1


@pytest.mark.parametrize("status", [400, 500])
async def test_an_unknown_update_is_answered_as_the_test_says(client: Client, status: int) -> None:
    client.fake.judgment.unknown_update_status = status
    body = {"updates": [{"action": "paint-it-blue"}]}
    assert (await client.send("POST", TABLE, json=body))[0] == status


async def test_a_planned_answer_hides_what_the_server_did(client: Client) -> None:
    client.fake.plan(Planned("POST", "/tables/flights", status=502, is_applied=True))
    client.fake.plan(Planned("POST", "/tables/flights", status=503))
    assert [await client.commit() for _ in range(3)] == [502, 503, 200]
    assert client.fake.tables.commits == 2


async def test_a_gateway_that_resends_shows_409_after_its_own_success(client: Client) -> None:
    client.fake.plan(Planned("POST", "/tables/flights", is_resent=True))
    body = snapshot_of(1)
    requirement = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}
    ref = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 1}
    body = {"requirements": [requirement], "updates": [*body["updates"], ref]}
    assert (await client.send("POST", TABLE, json=body))[0] == 409
    assert client.fake.tables.commits == 1


async def test_a_key_is_honored_where_it_is_announced(client: Client) -> None:
    key = {"Idempotency-Key": "0197-1"}
    assert [await client.commit(headers=key) for _ in range(2)] == [200, 200]
    assert client.fake.tables.commits == 2
    client.fake.features.idempotency_lifetime = "PT30M"
    assert [await client.commit(headers=key) for _ in range(2)] == [200, 200]
    assert client.fake.tables.commits == 3
    assert (await client.send("GET", "/v1/config"))[1]["idempotency-key-lifetime"] == "PT30M"


async def test_tables_are_changed_together_or_not_at_all(client: Client) -> None:
    name = {"identifier": {"namespace": ["db"], "name": "flights"}}
    good = {**change(build_swap(client.fake.tables.tables[FLIGHTS])), **name}
    bad = {**good, "identifier": {"namespace": ["db"], "name": "trains"}}
    path = f"/v1/{PREFIX}/transactions/commit"
    assert (await client.send("POST", path, json={"table-changes": [good, bad]}))[0] == 404
    assert client.fake.tables.commits == 0
    assert await client.send("POST", path, json={"table-changes": [good]}) == (204, None)


# --- Names ---------------------------------------------------------------------------------------


async def test_a_table_that_was_deleted_softly_blocks_its_name(client: Client) -> None:
    location = client.fake.tables.tables[FLIGHTS].metadata_location
    client.fake.judgment.soft_deletes = True
    assert (await client.send("DELETE", TABLE))[0] == 400
    assert (await client.send("DELETE", f"{TABLE}?purgeRequested=false"))[0] == 204
    assert (await client.send("GET", TABLE))[0] == 404
    body = {"name": "flights", "metadata-location": location}
    status, error = await client.send("POST", f"/v1/{PREFIX}/namespaces/db/register", json=body)
    assert (status, error["error"]["type"]) == (409, "AlreadyExistsException")


async def test_what_was_unregistered_is_returned_and_can_be_registered(client: Client) -> None:
    client.fake.tables.deleted.clear()
    assert await client.commit() == 200
    status, last = await client.send("POST", f"{TABLE}/unregister")
    assert status == 200
    assert (await client.send("POST", TABLE, json={"updates": []}))[0] == 404
    body = {"name": "flights", "metadata-location": last["metadata-location"]}
    register = f"/v1/{PREFIX}/namespaces/db/register"
    assert (await client.send("POST", register, json=body))[1]["metadata"] == last["metadata"]


async def test_the_separator_that_is_announced_is_the_only_one(client: Client) -> None:
    client.fake.features.separator = "."
    config = (await client.send("GET", "/v1/config"))[1]
    assert config["overrides"]["namespace-separator"] == "%2E"
    client.fake.tables.namespaces[("a", "b")] = {}
    assert (await client.send("GET", f"/v1/{PREFIX}/namespaces/a%2Eb"))[0] == 200
    assert (await client.send("GET", f"/v1/{PREFIX}/namespaces/a%1Fb"))[0] == 400


async def test_lists_come_in_pages(client: Client) -> None:
    fake = client.fake
    built = [build_table(f"db.{name}", warehouse=WAREHOUSE) for name in "cab"]
    fake.tables.tables = {table.identifier: table for table in built}
    fake.features.page_size_max = 2
    _, first = await client.send("GET", f"{TABLES}?pageToken=&pageSize=50")
    assert [one["name"] for one in first["identifiers"]] == ["a", "b"]
    _, last = await client.send("GET", f"{TABLES}?pageToken={first['next-page-token']}")
    assert [one["name"] for one in last["identifiers"]] == ["c"]
    assert "next-page-token" not in last


async def test_a_load_is_304_for_its_own_etag_and_may_name_no_file(client: Client) -> None:
    status, loaded = await client.send("GET", TABLE)
    location = loaded["metadata-location"]
    etag = {"If-None-Match": f'"{location.rpartition("/")[2]}"'}
    assert (status, (await client.send("GET", TABLE, headers=etag))[0]) == (200, 304)
    client.fake.features.shows_metadata_location = False
    assert (await client.send("GET", TABLE))[1]["metadata-location"] is None


# --- Credentials ---------------------------------------------------------------------------------

ASKS = {"X-Iceberg-Access-Delegation": "vended-credentials"}


async def test_credentials_come_with_a_load_that_asks_and_by_themselves(client: Client) -> None:
    def vend(number: int) -> Vended:
        by_prefix = (
            ("s3://bucket/db", s3_keys(f"key-{number}", "hush", "token", expires_ms=5)),
            ("gs://bucket", gcs_keys("token", expires_ms=6)),
            ("abfss://c@a.example", adls_keys("a.example", "sig", expires_ms=7)),
        )
        return Vended(by_prefix, REMOTE_SIGNING)

    client.fake.features.vend = vend
    assert "storage-credentials" not in (await client.send("GET", TABLE))[1]
    loaded = (await client.send("GET", TABLE, headers=ASKS))[1]
    first, *_ = loaded["storage-credentials"]
    assert first["prefix"] == "s3://bucket/db"
    assert first["config"]["s3.access-key-id"] == "key-1"
    assert loaded["config"]["s3.remote-signing-enabled"] == "true"
    fresh = (await client.send("GET", f"{TABLE}/credentials"))[1]
    assert fresh["storage-credentials"][0]["config"]["s3.access-key-id"] == "key-2"
    assert client.fake.vended == 2
