"""Table files are reached with the credentials that a catalog vends, and nothing else is."""

from __future__ import annotations

import asyncio

import pytest

from committer.errors import AccessError, NoSuchTableError, StorageUnavailableError
from committer.ports.storage import NewObject
from committer.ports.table_credentials import VendedCredential
from committer.request.table_identifier import TableIdentifier
from tests.support.storages.guarded_storage import FLIGHTS, FOLDER, KEY, OWN, Vending

FILE = f"{FOLDER}/data/one.parquet"
OTHER = "memory://bucket/inbox/request"


async def put(vending: Vending, *locations: str) -> None:
    await vending.memory.create([NewObject(location, b"x") for location in locations])


# --- Which credential ----------------------------------------------------------------------------


async def test_a_table_file_is_read_with_what_was_vended_and_all_else_with_our_own() -> None:
    vending = Vending()
    await put(vending, FILE, OTHER)
    vending.vend()
    assert await vending.storage.get(FILE) == b"x"
    assert (vending.keys, vending.own.calls) == (["first"], [])
    assert await vending.storage.get(OTHER) == b"x"
    assert (vending.keys, vending.own.calls) == (["first"], ["get"])


async def test_without_vended_credentials_every_call_goes_straight_to_our_own() -> None:
    vending = Vending()
    await vending.storage.create([NewObject(FILE, b"x"), NewObject(OTHER, b"x")])
    assert vending.own.calls == ["create"]
    vending.vend()
    vending.storage.keep(FLIGHTS, (FOLDER,), (), vending.renew)
    await vending.storage.get(FILE)
    assert (vending.keys, vending.own.calls) == ([], ["create", "get"])


async def test_the_longest_prefix_decides() -> None:
    vending = Vending()
    deep = f"{FOLDER}/data/deep"
    wide, data = vending.credential("wide"), vending.credential("data", f"{FOLDER}/data/")
    vending.vend(vending.credential("deep", deep), wide, data)
    files = {
        f"{FOLDER}/metadata/v1.json": "wide",
        f"{FOLDER}/data/one": "data",
        f"{deep}/one": "deep",
        f"{FOLDER}/data/deeper": "data",
    }
    await put(vending, *files)
    for file in files:
        await vending.storage.head(file)
    assert vending.keys == list(files.values())[:3]
    assert [len(session.calls) for session in vending.sessions] == [1, 2, 1]


@pytest.mark.parametrize("prefix", ["memory://bucket", "memory://bucket/db", "memory", "memory://"])
async def test_a_prefix_that_is_wider_than_its_table_is_for_the_table_alone(prefix: str) -> None:
    vending = Vending()
    neighbor, beside = TableIdentifier(("db",), "trains"), f"{FOLDER}-2/data/one"
    await put(vending, FILE, "memory://bucket/db/trains/one", beside)
    vending.vend(vending.credential("flights", prefix))
    vending.vend(
        vending.credential("trains", prefix), table=neighbor, folder="memory://bucket/db/trains"
    )
    await vending.storage.get(FILE)
    await vending.storage.get("memory://bucket/db/trains/one")
    assert vending.keys == ["flights", "trains"]
    await vending.storage.get(beside)
    assert vending.own.calls == ["get"]


async def test_a_prefix_beside_the_table_is_taken_as_it_is() -> None:
    vending = Vending()
    await put(vending, "memory://archive/old/one")
    vending.vend(vending.credential("archive", "memory://archive/old"), vending.credential("first"))
    await vending.storage.get("memory://archive/old/one")
    assert vending.keys == ["archive"]


async def test_several_objects_go_each_with_its_own_credential() -> None:
    vending = Vending()
    vending.vend()
    await vending.storage.create([NewObject(one, b"x") for one in (FILE, OTHER, f"{FILE}-2")])
    assert (vending.keys, vending.own.calls) == (["first"], ["create"])
    assert vending.sessions[0].calls == ["create", "create"]
    await vending.storage.delete([FILE, f"{FILE}-2", OTHER])
    assert (vending.sessions[0].calls[2:], vending.own.calls[1:]) == (["delete"], ["delete"])
    assert [info async for info in vending.memory.list("memory://bucket")] == []


# --- Renewal -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("life_s", "after_s", "renewals"),
    [(3600, 3299, 0), (3600, 3300, 1), (400, 199, 0), (400, 200, 1), (None, 10**9, 0)],
)
async def test_a_credential_is_renewed_5_minutes_before_its_end_or_after_half_of_its_life(
    life_s: float | None, after_s: float, renewals: int
) -> None:
    vending = Vending()
    vending.life_s = life_s
    await put(vending, FILE)
    vending.vend()
    vending.world.advance(after_s)
    await vending.storage.get(FILE)
    assert vending.renewals == renewals
    assert vending.keys == ["renewed-1" if renewals else "first"]


async def test_one_renewal_serves_all_calls_that_wait_for_it() -> None:
    vending = Vending()
    await put(vending, FILE)
    vending.vend()
    vending.world.advance(3500)
    await asyncio.gather(*(vending.storage.get(FILE) for _ in range(20)))
    assert (vending.renewals, vending.keys) == (1, ["renewed-1"])


async def test_a_renewal_that_fails_is_tried_again_and_the_old_one_used_to_its_end() -> None:
    vending = Vending()
    await put(vending, FILE)
    vending.vend()
    vending.go_away()
    vending.world.advance(3400)
    for _ in range(5):
        await vending.storage.get(FILE)
    assert (vending.renewals, vending.keys) == (1, ["first"])
    vending.world.advance(11)
    vending.failure = None
    await vending.storage.get(FILE)
    assert (vending.renewals, vending.keys) == (2, ["first", "renewed-2"])


async def test_a_credential_that_is_over_while_the_catalog_is_away_is_a_passing_error() -> None:
    vending = Vending()
    await put(vending, FILE)
    vending.vend()
    vending.go_away()
    vending.world.advance(3601)
    for _ in range(3):
        with pytest.raises(StorageUnavailableError, match=r"db\.flights.*the catalog is down"):
            await vending.storage.get(FILE)
    assert vending.renewals == 1
    vending.failure = NoSuchTableError("no table db.flights")
    vending.world.advance(11)
    with pytest.raises(AccessError, match="no table"):
        await vending.storage.get(FILE)


# --- Refusal -------------------------------------------------------------------------------------


async def test_a_credential_that_is_refused_is_renewed_and_the_call_repeated() -> None:
    vending = Vending()
    vending.vend()
    vending.world.advance(60)
    vending.let_in.remove("first")
    await vending.storage.create([NewObject(FILE, b"x"), NewObject(f"{FILE}-2", b"y")])
    assert (vending.renewals, vending.keys) == (1, ["first", "renewed-1"])
    assert await vending.storage.get(f"{FILE}-2") == b"y"


async def test_a_credential_that_is_refused_after_the_clock_was_put_back_is_renewed() -> None:
    vending = Vending()
    await put(vending, FILE)
    vending.vend()
    vending.world.put_back(6 * 3600)
    vending.world.advance(3600)
    vending.let_in.remove("first")
    assert await vending.storage.get(FILE) == b"x"
    assert (vending.renewals, vending.keys) == (1, ["first", "renewed-1"])


async def test_a_listing_goes_on_behind_what_it_has_yielded() -> None:
    vending = Vending()
    files = [f"{FOLDER}/data/{number}" for number in range(4)]
    await put(vending, *files)
    vending.vend()
    vending.world.advance(60)
    seen = []
    async for info in vending.storage.list(FOLDER):
        seen.append(info.location)
        if len(seen) == 2:
            vending.let_in.remove("first")
    assert seen == files
    assert (vending.renewals, vending.keys) == (1, ["first", "renewed-1"])


async def test_a_fresh_credential_that_is_refused_is_an_error_of_access() -> None:
    vending = Vending()
    await put(vending, FILE)
    vending.vend()
    vending.world.advance(60)
    vending.let_in.remove("first")

    async def vend_what_is_refused() -> tuple[VendedCredential, ...]:
        vending.renewals += 1
        return (VendedCredential("", {KEY: f"refused-{vending.renewals}"}),)

    vending.storage.keep(
        FLIGHTS, (FOLDER,), (VendedCredential("", {KEY: "first"}),), vend_what_is_refused
    )
    vending.world.advance(60)
    for _ in range(3):
        with pytest.raises(AccessError, match="refused-1"):
            await vending.storage.get(FILE)
    assert vending.renewals == 1


async def test_our_own_credentials_that_are_refused_are_renewed_by_nothing() -> None:
    vending = Vending()
    vending.vend()
    vending.let_in.remove(OWN)
    with pytest.raises(AccessError):
        await vending.storage.get(OTHER)
    assert (vending.renewals, vending.keys) == (0, [])


# --- Bounds --------------------------------------------------------------------------------------


async def test_sessions_are_shared_by_equal_credentials_and_bounded() -> None:
    vending = Vending(sessions_max=2)
    for number, key in enumerate(("a", "a", "b", "c")):
        folder, table = f"memory://bucket/{number}", TableIdentifier(("db",), f"t{number}")
        await put(vending, f"{folder}/one")
        vending.vend(vending.credential(key), table=table, folder=folder)
        await vending.storage.get(f"{folder}/one")
    assert [session.key for session in vending.sessions] == ["a", "b", "c"]
    assert [session.is_closed for session in vending.sessions] == [True, False, False]


async def test_the_session_of_a_credential_that_was_replaced_is_closed() -> None:
    vending = Vending()
    await put(vending, FILE)
    vending.vend()
    await vending.storage.get(FILE)
    vending.vend(vending.credential("second"))
    await vending.storage.get(FILE)
    assert [session.is_closed for session in vending.sessions] == [True, False]
    await vending.storage.close()
    assert [session.is_closed for session in vending.sessions] == [True, True]
    assert vending.own.is_closed


async def test_credentials_are_kept_of_so_many_tables() -> None:
    vending = Vending(tables_max=1)
    await put(vending, FILE)
    vending.vend()
    trains = TableIdentifier(("db",), "trains")
    vending.vend(vending.credential("t"), table=trains, folder="memory://bucket/db/trains")
    await vending.storage.get(FILE)
    assert (vending.keys, vending.own.calls) == ([], ["get"])


def test_a_credential_shows_no_secret() -> None:
    credential = VendedCredential("s3://bucket", {"s3.secret-access-key": "hush"}, 1)
    assert "hush" not in repr(credential)
