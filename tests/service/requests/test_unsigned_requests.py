"""The power of a request without a signature, in a running service."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from committer.iceberg.updates.metadata_update import SetProperties
from committer.ports.pointer_swap import LoadedTable
from committer.ports.storage import NewObject
from committer.reason import Reason
from committer.request.receipt_model import ReceiptState
from committer.request.request_format import EncodedRequest
from committer.request.signature import SigningKey
from tests.support.builders.alter_requests import build_alter
from tests.support.builders.flights import build_flights
from tests.support.builders.operation_requests import base_of, build_operation
from tests.support.builders.request_builders import build_file, build_line, build_manifest, seal
from tests.support.builders.signing import OLD, STRANGER, print_keys, signed
from tests.support.service.deleting import Deleting
from tests.support.service.outside import add_table, foreign_commit
from tests.support.service.service_harness import KEYS, ServiceHarness

VIRTUAL_TIME = True
PROPERTY = "frazil.unsigned-operations"
DROP = {"action": "drop-column", "name": "delay"}
OUTSIDE = {
    "action": "set-properties",
    "updates": {"write.metadata.path": "memory://elsewhere/metadata"},
}


async def open_harness(
    *keys: SigningKey,
    properties: Mapping[str, str] | None = None,
    unsigned_operations: str = "append",
    check_unsigned_files: bool = False,
) -> tuple[ServiceHarness, LoadedTable]:
    harness = ServiceHarness(
        has_keys=bool(keys),
        unsigned_operations=unsigned_operations,
        check_unsigned_files=check_unsigned_files,
    )
    if keys:
        await harness.storage.inner.create((NewObject(KEYS, print_keys(*keys)),))
    return harness, await add_table(harness, build_flights(properties=properties))


def append(table: LoadedTable, producer: str = "query-1") -> EncodedRequest:
    line = build_line(table, producer=producer)
    file = build_file(table.metadata, line.attempt, partition=("AA",))
    return seal(line, [build_manifest(table.metadata, [file])])


async def reasons(harness: ServiceHarness) -> list[str]:
    return sorted(record.reason for record in await harness.quarantined())


async def columns(harness: ServiceHarness) -> list[str]:
    return [field.name for field in (await harness.load()).current_schema.fields]


# --- Operations ----------------------------------------------------------------------------------


async def test_an_unsigned_request_appends_rows_and_neither_alters_nor_deletes() -> None:
    harness, table = await open_harness()
    before = await columns(harness)
    await harness.publish(append(table))
    await harness.run_until_settled()
    [file] = await harness.live_files()
    needs = {**base_of(await harness.load()), "removed-data-files": [file.file_path]}
    await harness.publish(build_operation(table, "delete", producer="deletes", needs=needs))
    await harness.publish(build_alter(table, DROP, producer="alters"))
    await harness.publish(append(table, "query-2"))
    await harness.run_until_settled()
    assert await reasons(harness) == [Reason.UNSIGNED_OPERATION] * 2
    assert await columns(harness) == before
    assert len(await harness.live_files()) == 2
    [receipt] = await harness.receipts("alters")
    assert receipt.state is ReceiptState.QUARANTINED
    assert receipt.message is not None
    assert "`alter` of table `db.flights` needs a signature" in receipt.message
    assert "allows `append` without one" in receipt.message


async def test_a_verified_signature_gives_the_power_that_its_key_has() -> None:
    harness, table = await open_harness(OLD)
    await harness.publish(signed(build_alter(table, DROP, producer="alters"), OLD))
    await harness.run_until_settled()
    assert await reasons(harness) == []
    assert "delay" not in await columns(harness)


async def test_a_signature_that_nothing_verifies_gives_no_power() -> None:
    """The committer has no keys: any text would pass as a signature."""
    harness, table = await open_harness()
    await harness.publish(signed(build_alter(table, DROP, producer="alters"), STRANGER))
    await harness.publish(signed(append(table), STRANGER))
    await harness.run_until_settled()
    assert await reasons(harness) == [Reason.UNSIGNED_OPERATION]
    assert len(await harness.live_files()) == 1
    [receipt] = await harness.receipts("alters")
    assert "cannot be verified" in (receipt.message or "")


async def test_a_signature_that_nothing_verifies_is_none_where_a_table_requires_one() -> None:
    harness, table = await open_harness(properties={"frazil.require-signature": "true"})
    await harness.publish(signed(append(table), STRANGER))
    await harness.run_until_settled()
    assert await reasons(harness) == [Reason.SIGNATURE_MISSING]


@pytest.mark.parametrize(
    ("setting", "text", "refused"),
    [
        ("append", "append, alter", 0),
        ("append", " ALL ", 0),
        ("append", "", 1),
        ("all", "append", 1),
        ("all", "alter", 1),
        ("all", "none", 2),
        # A property that cannot be read allows nothing.
        ("all", "apend", 2),
    ],
)
async def test_a_table_says_more_or_less_than_the_setting(
    setting: str, text: str, refused: int
) -> None:
    harness, table = await open_harness(properties={PROPERTY: text}, unsigned_operations=setting)
    await harness.publish(append(table))
    await harness.publish(build_alter(table, DROP, producer="alters"))
    await harness.run_until_settled()
    assert await reasons(harness) == [Reason.UNSIGNED_OPERATION] * refused


async def test_no_property_of_a_table_loosens_the_requirement_of_a_signature() -> None:
    harness = ServiceHarness(has_keys=True, require_signature=True)
    await harness.storage.inner.create((NewObject(KEYS, print_keys(OLD)),))
    table = await add_table(harness, build_flights(properties={PROPERTY: "all"}))
    await harness.publish(append(table))
    await harness.run_until_settled()
    assert await reasons(harness) == [Reason.SIGNATURE_MISSING]


async def test_the_next_request_obeys_a_property_that_an_operator_sets() -> None:
    harness, table = await open_harness()
    async with harness.running():
        await harness.publish(build_alter(table, DROP, producer="first"))
        await harness.settle()
        await foreign_commit(harness, table, SetProperties({PROPERTY: "append,alter"}))
        await harness.publish(append(table))
        await harness.settle()
        await harness.publish(build_alter(table, DROP, producer="second"))
        await harness.settle()
    assert await reasons(harness) == [Reason.UNSIGNED_OPERATION]
    assert "delay" not in await columns(harness)


@pytest.mark.parametrize("key", [PROPERTY, "frazil.require-signature", "frazil.adopt.locations"])
async def test_no_request_sets_a_property_that_says_what_requests_may_do(
    key: str,
) -> None:
    harness, table = await open_harness(unsigned_operations="all")
    change = {"action": "set-properties", "updates": {"owner": "me"}}
    sealed = build_alter(table, change, producer="alters")
    content = sealed.content.replace(b'"owner":"me"', b'"%s":"all"' % key.encode())
    assert content != sealed.content
    await harness.inbox_storage.inner.create(
        (NewObject(harness.inbox.location(sealed.key), content),)
    )
    async with harness.running(reconcile_interval_s=5.0):
        await harness.settle()
    assert await reasons(harness) == [Reason.REQUEST_MALFORMED]
    assert key not in (await harness.load()).properties


# --- Upkeep --------------------------------------------------------------------------------------


async def test_upkeep_of_this_process_needs_no_key_and_its_name_gives_no_power() -> None:
    deleting = Deleting(unsigned_operations="append,row-delta,delete")
    await deleting.create()
    async with deleting.harness.running():
        await deleting.make_one_dangle()
        await deleting.harness.settle(61.0)
        await deleting.append("AA")
        await deleting.harness.settle(5.0)
        assert await deleting.carriers() == ["BB"]
        head = base_of(await deleting.harness.load())
        paths = [file.file_path for file in await deleting.harness.live_files()]
        forged = build_operation(
            deleting.table,
            "rewrite-files",
            producer="frazil-upkeep-0199",
            needs={**head, "removed-data-files": paths[:1]},
        )
        await deleting.harness.publish(forged)
        await deleting.harness.settle()
    [receipt] = await deleting.harness.receipts("frazil-upkeep-0199")
    assert receipt.reason == Reason.UNSIGNED_OPERATION
    # The answer is kept alone: upkeep of another process asks again.
    [record] = await deleting.harness.quarantined()
    assert record.is_told_only
    assert len(await deleting.harness.live_files()) == len(paths)


# --- Locations -----------------------------------------------------------------------------------


@pytest.mark.parametrize("signs", [False, True])
async def test_no_request_moves_the_files_of_a_table_to_where_no_table_may_be(
    signs: bool,
) -> None:
    harness, table = await open_harness(OLD, unsigned_operations="all")
    sealed = build_alter(table, OUTSIDE, producer="alters")
    await harness.publish(signed(sealed, OLD) if signs else sealed)
    within = {**OUTSIDE, "updates": {"write.metadata.path": f"{table.metadata.location}/meta"}}
    await harness.publish(build_alter(table, within, producer="moves"))
    await harness.publish(append(table))
    await harness.run_until_settled()
    assert await reasons(harness) == [Reason.LOCATION_NOT_ALLOWED]
    [receipt] = await harness.receipts("alters")
    assert "memory://elsewhere/metadata" in (receipt.message or "")
    assert "expected a folder in memory://warehouse" in (receipt.message or "")
    loaded = await harness.catalog.inner.load(table.identifier)
    assert loaded.metadata_location.startswith(f"{table.metadata.location}/meta/")
    assert len(await harness.live_files()) == 1


# --- Data files ----------------------------------------------------------------------------------


async def put_files(harness: ServiceHarness, sealed: EncodedRequest, table: LoadedTable) -> None:
    file = build_file(table.metadata, sealed.request.attempt, partition=("AA",))
    await harness.storage.inner.create((NewObject(file.file_path, b"rows"),))


@pytest.mark.parametrize(
    ("setting", "properties"), [(True, None), (False, {"frazil.check-unsigned-files": "true"})]
)
async def test_an_unsigned_request_without_its_files_is_refused_where_that_is_checked(
    setting: bool, properties: Mapping[str, str] | None
) -> None:
    harness, table = await open_harness(OLD, properties=properties, check_unsigned_files=setting)
    absent, present = append(table, "absent"), append(table, "present")
    await put_files(harness, present, table)
    await harness.publish(absent)
    await harness.publish(present)
    await harness.publish(signed(append(table, "signed"), OLD))
    await harness.run_until_settled()
    assert await reasons(harness) == [Reason.DATA_FILE_MISSING]
    assert len(await harness.live_files()) == 2
    [receipt] = await harness.receipts("absent")
    assert str(absent.request.attempt) in (receipt.message or "")


async def test_a_storage_that_does_not_answer_refuses_nothing() -> None:
    harness, table = await open_harness(check_unsigned_files=True)
    first, second = append(table, "first"), append(table, "second")
    await put_files(harness, first, table)
    await put_files(harness, second, table)
    async with harness.running():
        await harness.publish(first)
        await harness.settle()
        harness.storage.is_away = True
        await harness.publish(second)
        await harness.settle()
        assert len(await harness.live_files()) == 1
        harness.storage.is_away = False
        await harness.settle(120.0)
    assert await reasons(harness) == []
    assert len(await harness.live_files()) == 2


async def test_files_are_looked_up_once_and_where_nothing_asks_for_it_not_at_all() -> None:
    for is_checked in (False, True):
        harness, table = await open_harness(check_unsigned_files=is_checked)
        sealed = append(table)
        await put_files(harness, sealed, table)
        before = harness.storage.calls["head"]
        await harness.publish(sealed)
        await harness.run_until_settled()
        assert len(await harness.live_files()) == 1
        assert harness.storage.calls["head"] - before == int(is_checked)
