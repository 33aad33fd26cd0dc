"""The setup on AWS: as the code needs it, and no more."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from botocore.session import Session
from botocore.validate import ParamValidator

from committer import table_defaults
from committer.catalog.dynamodb.dynamodb_layout import create_table
from committer.errors import AccessError
from committer.plan.cleanup import expiry
from committer.plan.cleanup.orphan_search import data_files_of
from committer.ports.storage import NewObject
from committer.real_world import RealWorld
from committer.request.receipt_model import ReceiptState
from committer.service.admin.data_file_check import absent_data_file
from committer.storage.inbox.inbox import Inbox, Quarantine
from committer.storage.inbox.inbox_identity import NAME, InboxIdentity
from committer.storage.probe import prove_conditions
from tests.deploy.client_calls import ROOT, ClientCalls, operations
from tests.deploy.policed_storage import PolicedStorage
from tests.deploy.policies import (
    AWS,
    BUCKET,
    CREATES,
    OVERWRITES,
    PART,
    REPLACES,
    TABLE,
    load_policy,
)
from tests.support.builders.request_builders import build_request
from tests.support.builders.table_builders import build_table
from tests.support.faults.faulty_catalog import Fault
from tests.support.memory.memory_storage import MemoryStorage
from tests.support.service.service_harness import INBOX, WAREHOUSE, ServiceHarness
from tests.support.workers.publishing import build_bench
from workers.requests.publisher import Publisher, PublishPolicy
from workers.requests.table_cache import TableCache, opened

VIRTUAL_TIME = True

ROLES = ("committer", "operator", "producer", "maintenance")

# --- The calls that there are --------------------------------------------------------------------

_BASE = "committer/catalog/pointer_catalog.py"
DYNAMODB = ClientCalls("dynamodb", _BASE, "committer/catalog/dynamodb/*.py")
GLUE = ClientCalls("glue", _BASE, "committer/catalog/glue/*.py")
S3_TABLES = ClientCalls("s3tables", _BASE, "committer/catalog/s3_tables/*.py")
S3 = ClientCalls("s3", "committer/storage/object_storage.py", "committer/storage/s3/*.py")

# Permissions that calls of a role's code would need, but that it is not given, and why not.
WITHHELD = {
    "committer": {
        "dynamodb:CreateTable",  # an operator makes the table
        "dynamodb:DeleteItem",  # the probe's, where a server has ignored its condition
    },
    "producer": {"dynamodb:CreateTable"},
    "operator": set[str](),
}
CATALOG_METHODS = {
    "committer": {"open", "load", "current_location", "swap", "probe"},
    "producer": {"open", "load", "current_location"},
    "operator": {
        "open", "load", "current_location", "swap", "create_namespace", "create_table",
        "drop_table", "list_namespaces", "list_tables", "register_table", "rename_table",
    },
}  # fmt: skip
STORAGE_METHODS = {
    "committer": {"get", "head", "create", "replace", "delete", "list"},
    "producer": {"get", "head", "create", "list"},
    "operator": {"get", "head", "create", "replace", "delete", "list"},
    "maintenance": {"get", "delete", "list"},
}
# Modules of commands, not of `frazil serve`.
BY_PEOPLE = set((ROOT / "committer/service/admin").glob("*.py"))
# A purge probes catalogs that keep the pointer with the files: none of AWS does.
NOT_ON_AWS = {"operator": {"probe"}}
LOOKED_AT = {
    *("capabilities", "objects_before", "close", "inner"),
    # A transaction needs the permissions of its actions, which are those of `swap`; Glue and S3
    # Tables have none.
    "swap_together",
}


@pytest.mark.parametrize("role", sorted(CATALOG_METHODS))
def test_a_role_may_do_in_dynamodb_what_its_code_calls_and_no_more(role: str) -> None:
    needed = DYNAMODB.permissions(CATALOG_METHODS[role]) - WITHHELD[role]
    assert {one for one in load_policy(role).actions if one.startswith("dynamodb:")} == needed


# The proof of the condition, which a committer makes on servers that are not AWS.
PROVES = {"glue:CreateDatabase", "glue:CreateTable", "glue:DeleteDatabase"}
PROVES_TOKEN = {
    f"s3tables:{name}"
    for name in ("CreateNamespace", "CreateTable", "DeleteNamespace", "DeleteTable")
}
# By S3's own calls, which are other rights here.
FILES_OF_TABLES = {"s3tables:GetTableData", "s3tables:PutTableData"}
GLUE_METHODS = {
    # A wrong region or account shows a catalog without a database: looked for before work begins.
    "committer": CATALOG_METHODS["committer"] | {"list_namespaces"},
    "producer": CATALOG_METHODS["producer"],
    "operator": CATALOG_METHODS["operator"]
    | {"drop_namespace", "namespace_properties", "set_namespace_properties"},
}


@pytest.mark.parametrize("role", sorted(GLUE_METHODS))
def test_a_role_may_do_in_glue_what_its_code_calls_and_no_more(role: str) -> None:
    withheld = PROVES if role == "committer" else set()
    needed = GLUE.permissions(GLUE_METHODS[role]) - withheld
    policy = load_policy(f"glue-{role}")
    assert policy.actions == needed
    (statement,) = policy.statements
    for resource in statement["Resource"]:
        assert resource.startswith("arn:aws:glue:YOUR_REGION:YOUR_ACCOUNT:")


@pytest.mark.parametrize("role", sorted(GLUE_METHODS))
def test_a_role_may_do_in_s3_tables_what_its_code_calls_and_no_more(role: str) -> None:
    withheld = PROVES_TOKEN if role == "committer" else set()
    needed = S3_TABLES.permissions(GLUE_METHODS[role]) - withheld
    policy = load_policy(f"s3tables-{role}")
    assert policy.actions == needed | FILES_OF_TABLES
    assert "s3tables:DeleteTable" not in policy.actions
    (statement,) = policy.statements
    for resource in statement["Resource"]:
        assert resource.startswith("arn:aws:s3tables:YOUR_REGION:YOUR_ACCOUNT:bucket/YOUR_BUCKET")


@pytest.mark.parametrize("role", ROLES)
def test_a_role_may_do_on_s3_what_its_code_calls_and_no_more(role: str) -> None:
    needed = S3.permissions(STORAGE_METHODS[role])
    assert {one for one in load_policy(role).actions if one.startswith("s3:")} == needed


def test_the_committer_and_producers_use_the_catalog_as_their_roles_say() -> None:
    """Found in the code: a new use needs a look at the role."""
    seen = {
        "committer": {"load", "swap", "probe"},
        "producer": {"current_location"},
        "operator": {"load", "list_tables"},
    }
    files = {
        "committer": set((ROOT / "committer/service").rglob("*.py")) - BY_PEOPLE,
        "producer": set((ROOT / "workers").rglob("*.py")),
        "operator": BY_PEOPLE,
    }
    for role in files:
        used = {
            method
            for path in files[role]
            for method in re.findall(
                r"(?:(?<!settings)(?<!committer)[._]|await |, |\()catalog\.(\w+)", path.read_text()
            )
        }
        used -= LOOKED_AT | NOT_ON_AWS.get(role, set())
        assert seen[role] <= used <= GLUE_METHODS[role], role


def test_producers_delete_and_replace_nothing_in_the_inbox() -> None:
    for path in (ROOT / "workers").rglob("*.py"):
        assert not re.search(r"(inbox|quarantine|storage)\.(delete|replace)\b", path.read_text())


# --- Separation of the roles ---------------------------------------------------------------------

KEY = "requests/inbox/a-table/a-producer/00000000000000000007/an-attempt"
METADATA = "warehouse/db/flights/metadata/00001-x.metadata.json"
DATA = "warehouse/db/flights/data/at=1/a.parquet"


@pytest.mark.parametrize("role", ["committer", "operator"])
@pytest.mark.parametrize("key", [KEY, METADATA])
def test_requests_and_metadata_are_created_and_never_overwritten(role: str, key: str) -> None:
    policy = load_policy(role)
    assert policy.allows("s3:PutObject", f"{BUCKET}/{key}", CREATES)
    assert policy.allows("s3:PutObject", f"{BUCKET}/{key}", PART)
    assert not policy.allows("s3:PutObject", f"{BUCKET}/{key}", OVERWRITES)
    assert not policy.allows("s3:PutObject", f"{BUCKET}/{key}", REPLACES)


def test_a_producer_adds_requests_and_data_files_and_touches_nothing_else() -> None:
    producer = load_policy("producer")
    assert producer.allows("s3:PutObject", f"{BUCKET}/{KEY}", CREATES)
    assert not producer.allows("s3:PutObject", f"{BUCKET}/{KEY}", OVERWRITES)
    assert not producer.allows("s3:PutObject", f"{BUCKET}/{METADATA}", CREATES)
    quarantined = KEY.replace("inbox", "quarantine")
    assert producer.allows("s3:GetObject", f"{BUCKET}/{quarantined}")
    assert not producer.allows("s3:PutObject", f"{BUCKET}/{quarantined}", CREATES)
    assert "s3:DeleteObject" not in producer.actions
    assert not {one for one in producer.actions if one.startswith("dynamodb:")} - {
        "dynamodb:DescribeTable",
        "dynamodb:GetItem",
    }


def test_data_files_are_written_by_producers_and_removed_by_maintenance_alone() -> None:
    for role in ROLES:
        policy = load_policy(role)
        written = policy.allows("s3:PutObject", f"{BUCKET}/{DATA}", OVERWRITES)
        assert written == (role == "producer")
        assert policy.allows("s3:DeleteObject", f"{BUCKET}/{DATA}") == (role == "maintenance")


def test_maintenance_writes_nothing() -> None:
    assert load_policy("maintenance").actions == {
        "s3:ListBucket",
        "s3:GetObject",
        "s3:DeleteObject",
    }


def test_only_an_operator_makes_and_drops() -> None:
    made = {"dynamodb:CreateTable", "dynamodb:PutItem", "dynamodb:DeleteItem"}
    for role in ROLES:
        assert load_policy(role).actions & made == (made if role == "operator" else set())


@pytest.mark.parametrize("role", ROLES)
def test_a_role_reaches_its_own_bucket_and_table_only(role: str) -> None:
    for statement in load_policy(role).statements:
        assert not any("*" in action for action in statement["Action"])
        for resource in statement["Resource"]:
            assert resource.startswith((BUCKET, TABLE))


# --- They are enough -----------------------------------------------------------------------------


async def test_the_committers_policy_is_enough_for_commits_conflicts_and_quarantine() -> None:
    """Producers and operators of this test go through it too, to the same places."""
    harness = ServiceHarness(wrap=lambda inner: PolicedStorage(inner, load_policy("committer")))
    table = await harness.create_table()
    await harness.publish(build_request(table, epoch=0))
    await harness.publish(build_request(table, producer="other", branch="absent"), announce=False)
    harness.catalog.plan(Fault.CONFLICT, Fault.LOST_REPLY)
    await harness.run_until_settled(seconds=120.0)
    policed = harness.storage.inner
    assert isinstance(policed, PolicedStorage)
    assert policed.refused == []
    assert len(await harness.live_files()) == len(await harness.quarantined()) == 1
    assert await harness.outstanding() == []
    assert policed.asked == {"s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:ListBucket"}


async def expired(
    monkeypatch: pytest.MonkeyPatch, *roles: str
) -> tuple[ServiceHarness, PolicedStorage]:
    """Return a table with forty commits, with expiry, merging and clean-up at work."""
    monkeypatch.setattr(expiry, "SNAPSHOTS_MIN", 3)
    harness = ServiceHarness(wrap=lambda inner: PolicedStorage(inner, *map(load_policy, roles)))
    small = {
        "commit.manifest.min-count-to-merge": "10",
        "history.expire.max-snapshot-age-ms": "0",
        "history.expire.min-snapshots-to-keep": "5",
        "write.metadata.previous-versions-max": "3",
    }
    table = await harness.create_table(properties={**table_defaults.NEW_TABLE_PROPERTIES, **small})
    async with harness.running():
        for epoch in range(40):
            await harness.publish(build_request(table, epoch=epoch))
            await harness.settle(4.0)
    assert len(await harness.live_files()) == 40
    assert isinstance(harness.storage.inner, PolicedStorage)
    return harness, harness.storage.inner


async def test_with_the_maintenance_policy_the_committer_cleans_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    harness, policed = await expired(monkeypatch, "committer", "maintenance")
    assert policed.refused == []
    assert len((await harness.load()).snapshots) < 15


async def test_without_the_maintenance_policy_the_committer_deletes_nothing_of_a_table_and_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, policed = await expired(monkeypatch, "committer")
    assert policed.refused
    for refused in policed.refused:
        assert re.fullmatch(r"s3:DeleteObject .*/warehouse/.*/metadata/.*", refused)


async def test_an_operators_policy_is_enough_to_see_that_data_files_are_there() -> None:
    storage = MemoryStorage()
    sealed = build_request(build_table("db.flights", warehouse=WAREHOUSE))
    policed = PolicedStorage(storage, load_policy("operator"))
    (path,) = data_files_of(sealed, ())
    assert await absent_data_file(policed, sealed) == path
    await storage.create((NewObject(path, b"rows"),))
    assert await absent_data_file(policed, sealed) is None
    assert policed.refused == []


async def test_the_committers_policy_is_enough_to_prove_that_conditions_are_enforced() -> None:
    policed = PolicedStorage(MemoryStorage(), load_policy("committer"))
    await prove_conditions(policed, f"{INBOX}/frazil-probe-x")
    assert policed.refused == []


async def test_a_producers_policy_is_enough_to_publish_and_to_learn_what_became_of_it() -> None:
    bench = await build_bench(with_queue=False)
    policed = PolicedStorage(bench.storage, load_policy("producer"))
    publisher = Publisher(
        catalog_name="main",
        tables=TableCache(open_catalog=opened(bench.catalog), storage=policed, world=bench.world),
        inbox=Inbox(policed, "memory:/requests"),
        quarantine=Quarantine(policed, "memory:/requests"),
        queue=None,
        world=bench.world,
    )
    await publisher.publish(bench.written(epoch=0, may_repeat=True), PublishPolicy())
    await bench.land(bench.written(epoch=1))
    waiting = PublishPolicy(wait="committed", wait_timeout_s=5.0)
    receipt = await publisher.publish(bench.written(epoch=1), waiting)
    assert receipt.state is ReceiptState.COMMITTED
    assert policed.refused == []
    assert policed.asked == {"s3:GetObject", "s3:PutObject", "s3:ListBucket"}


async def test_a_committer_makes_the_identity_of_an_inbox_and_a_producer_reads_it() -> None:
    storage = MemoryStorage()
    policed = {role: PolicedStorage(storage, load_policy(role)) for role in ROLES}
    inboxes = {role: InboxIdentity(one, INBOX, RealWorld()) for role, one in policed.items()}
    with pytest.raises(AccessError, match="the first start of a committer makes it"):
        await inboxes["producer"].ensure()
    made = await inboxes["committer"].ensure()
    assert await inboxes["producer"].ensure() == await inboxes["operator"].ensure() == made
    assert not load_policy("producer").allows("s3:PutObject", f"{BUCKET}/requests/{NAME}", CREATES)


# --- The table and the bucket --------------------------------------------------------------------


def document(name: str) -> dict[str, object]:
    found = json.loads((AWS / name).read_text())
    assert isinstance(found, dict)
    return found


def test_the_table_is_the_one_that_the_catalog_would_make() -> None:
    assert document("dynamodb-table.json") == create_table("iceberg")


@pytest.mark.parametrize(
    ("service", "call", "parameters"),
    [
        ("dynamodb", "create_table", document("dynamodb-table.json")),
        (
            "s3",
            "put_bucket_lifecycle_configuration",
            {"Bucket": "b", "LifecycleConfiguration": document("bucket-lifecycle.json")},
        ),
    ],
)
def test_a_document_is_what_its_call_takes(
    service: str, call: str, parameters: dict[str, object]
) -> None:
    model = Session().get_service_model(service).operation_model(operations(service)[call])
    assert model.input_shape
    report = ParamValidator().validate(parameters, model.input_shape)
    assert not report.has_errors(), report.generate_report()


def test_parts_of_broken_uploads_and_removed_versions_do_not_stay_for_ever() -> None:
    rules = document("bucket-lifecycle.json")["Rules"]
    assert isinstance(rules, list)
    everywhere = [rule for rule in rules if rule["Filter"] == {"Prefix": ""}]
    assert [rule["AbortIncompleteMultipartUpload"] for rule in everywhere]
    assert {
        rule["Filter"]["Prefix"] for rule in rules if "NoncurrentVersionExpiration" in rule
    } == {
        "requests/",
        "warehouse/",
    }
    # A current version goes only where a role removes it.
    for rule in rules:
        assert rule.get("Expiration", {}).keys() <= {"ExpiredObjectDeleteMarker"}
        assert rule["Status"] == "Enabled"


PAGE = ROOT / "docs/how-to/run-on-aws.md"


def test_what_the_page_makes_of_the_documents_names_what_it_was_told(tmp_path: Path) -> None:
    block = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(), re.M | re.S)[0]
    (tmp_path / "deploy").symlink_to(ROOT / "deploy")
    told = {"BUCKET": "lake", "AWS_REGION": "eu-central-1", "ACCOUNT": "111122223333"}
    subprocess.run(["sh", "-ec", block], cwd=tmp_path, env={**os.environ, **told}, check=True)
    made = {path.name: path.read_text() for path in (tmp_path / "aws").iterdir()}
    assert made.keys() == {path.name for path in AWS.iterdir()}
    assert [name for name, text in made.items() if "YOUR_" in text] == []
    assert "arn:aws:dynamodb:eu-central-1:111122223333:table/iceberg" in made["producer.json"]
    for text in made.values():
        json.loads(text)


def test_no_document_is_forgotten_on_the_page() -> None:
    page = PAGE.read_text()
    assert [path.name for path in sorted(AWS.glob("*")) if path.name not in page] == []
    assert {path.suffix for path in Path(AWS).iterdir()} == {".json"}
