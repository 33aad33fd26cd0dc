"""Storage on Google Cloud Storage and on Azure beyond the port: calls, lost answers, overload,
refusals. Each test runs on an emulator of each.
"""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from committer.errors import (
    AccessError,
    AlreadyExistsError,
    NotFoundError,
    SettingsError,
    StorageUnavailableError,
    UndeletedError,
)
from committer.ports.storage import NewObject, create_or_equal
from committer.storage.http.http_client import HttpLimits
from committer.storage.repeated_calls import CallLimits
from tests.support.servers.azurite import TEST_S_MAX, Azurite
from tests.support.servers.gcs_server import GcsServer
from tests.support.servers.http_proxy import Answer, Fault
from tests.support.storages.http_harness import HttpHarness, adls_harness, gcs_harness

pytestmark = pytest.mark.server


@pytest.fixture(params=["gcs", pytest.param("adls", marks=pytest.mark.timeout(TEST_S_MAX))])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[HttpHarness]:
    if request.param == "gcs":
        async with gcs_harness(request.getfixturevalue("gcs_server")) as harness:
            yield harness
    else:
        async with adls_harness(request.getfixturevalue("azurite")) as harness:
            yield harness


async def put(store: HttpHarness, name: str = "a", content: bytes = b"content") -> None:
    await store.storage.create([NewObject(store.at(name), content)])


async def know_bucket(store: HttpHarness) -> None:
    """Let the storage learn that there is the bucket, for which it may ask once."""
    assert [found async for found in store.storage.list(store.at("none"))] == []
    store.proxy.received.clear()


# --- Calls ---------------------------------------------------------------------------------------


async def test_each_operation_is_as_many_calls_as_the_page_says(store: HttpHarness) -> None:
    await know_bucket(store)
    storage = store.storage
    await storage.create([])
    await storage.delete([])
    assert store.calls == []
    await storage.create([NewObject(store.at(name), b"content") for name in "abc"])
    assert store.calls == ["PUT"] * 3
    assert await storage.get(store.at("a")) == b"content"
    assert await storage.get(store.at("a"), offset=2, length=2) == b"nt"
    assert await storage.get(store.at("a"), offset=9) == b""
    assert store.calls == ["GET"] * 3
    etag = (await storage.head(store.at("a"))).etag
    assert store.calls == ["HEAD"]
    await storage.replace(store.at("a"), b"other", etag=etag)
    assert store.calls == ["PUT"]
    assert await storage.get(store.at("a"), length=0) == b""
    assert store.calls == ["HEAD"]
    assert len([found async for found in storage.list(store.root)]) == 3
    assert store.calls == ["LIST"]
    await storage.delete([store.at(name) for name in "abc"])
    assert store.calls == ["DELETE"] * 3
    assert store.world.monotonic_s() == 0.0


async def test_a_failed_condition_costs_one_more_call(store: HttpHarness) -> None:
    await know_bucket(store)
    await store.rival.create([NewObject(store.at("a"), b"content")])
    with pytest.raises(AlreadyExistsError):
        await put(store)
    assert store.calls == ["PUT", "HEAD"]
    stale = (await store.rival.head(store.at("a"))).etag
    await store.rival.replace(store.at("a"), b"newer", etag=stale)
    with pytest.raises(AlreadyExistsError):
        await store.storage.replace(store.at("a"), b"other", etag=stale)
    assert store.calls == ["PUT", "HEAD"]


@pytest.mark.parametrize("etag", ["0", "*", "invented", "", "-1", 'a"b'])
async def test_an_etag_that_no_object_has_never_becomes_a_condition(
    store: HttpHarness, etag: str
) -> None:
    await store.rival.create([NewObject(store.at("a"), b"content")])
    for name in "ab":
        with pytest.raises(AlreadyExistsError):
            await store.storage.replace(store.at(name), b"other", etag=etag)
    assert await store.rival.get(store.at("a")) == b"content"
    assert [info.location async for info in store.rival.list(store.root)] == [store.at("a")]


async def test_a_listing_goes_page_by_page(store: HttpHarness) -> None:
    storage = store.another(CallLimits(listed_max=2))
    names = [f"{number}" for number in range(5)]
    await store.rival.create([NewObject(store.at(name), b"") for name in names])
    found = [info.location async for info in storage.list(store.root)]
    assert found == [store.at(name) for name in names]
    assert store.calls == ["LIST"] * 3


async def test_the_names_in_a_folder_are_objects_and_folders_page_by_page(
    store: HttpHarness,
) -> None:
    storage = store.another(CallLimits(listed_max=2))
    names = ["a", "b/c/d", "b/e", "b0", "ä/x", "b.c", "z"]
    await store.rival.create([NewObject(store.at(f"x/{name}"), b"") for name in names])
    found = ["a", "b.c", "b/", "b0", "z", "ä/"]
    assert await storage.names(store.at("x")) == found
    assert len(store.calls) >= 2
    assert await storage.names(store.at("x/"), starts_with="b") == ["b.c", "b/", "b0"]
    assert await storage.names(store.at("absent")) == []


async def test_only_so_many_calls_are_under_way_at_once(store: HttpHarness) -> None:
    storage = store.another(http_limits=HttpLimits(connections_max=3))
    objects = [NewObject(store.at(f"{number}"), b"") for number in range(12)]
    await asyncio.gather(storage.create(objects[:6]), storage.create(objects[6:]))
    assert store.proxy.at_once_most == 3
    assert store.calls == ["PUT"] * 12


async def test_after_an_error_no_further_object_is_created(store: HttpHarness) -> None:
    await store.rival.create([NewObject(store.at("0"), b"")])
    storage = store.another(http_limits=HttpLimits(connections_max=2))
    with pytest.raises(AlreadyExistsError):
        await storage.create([NewObject(store.at(f"{number}"), b"") for number in range(20)])
    assert store.proxy.at_once == 0
    assert len(store.calls) < 10


# --- Lost answers and late landings --------------------------------------------------------------


async def test_a_created_object_whose_answer_was_lost_is_not_taken_for_anothers(
    store: HttpHarness,
) -> None:
    await know_bucket(store)
    store.proxy.plan(store.put_match, Fault.CUT_ANSWER)
    await put(store)
    assert store.calls == ["PUT", "PUT", "HEAD"]
    assert await store.storage.get(store.at("a")) == b"content"


@pytest.mark.parametrize(
    "failure",
    [Fault.CUT_ANSWER, Fault.CUT_REQUEST, Answer(503), Answer(500), Answer(429), Answer(408)],
    ids=str,
)
async def test_nothing_below_sends_a_write_again_by_itself(
    store: HttpHarness, failure: Fault | Answer
) -> None:
    limits = CallLimits(resends_max=0, slow_downs_max=0)
    storage = store.another(limits, HttpLimits(connections_max=1))
    # Libraries send again what breaks on a connection that was used before.
    etag = await storage.replace(store.at("a"), b"", etag=None)
    writes: list[Callable[[], Awaitable[object]]] = [
        lambda: storage.create([NewObject(store.at("b"), b"")]),
        lambda: storage.replace(store.at("a"), b"new", etag=etag),
    ]
    for write in writes:
        store.calls.clear()
        store.proxy.received.clear()
        store.proxy.plan(store.put_match, failure)
        with pytest.raises(StorageUnavailableError):
            await write()
        assert store.calls == ["PUT"]


async def test_a_create_that_never_arrived_is_sent_again(store: HttpHarness) -> None:
    store.proxy.plan(store.put_match, Fault.CUT_REQUEST)
    await put(store)
    assert store.calls == ["PUT", "PUT"]


async def test_a_create_that_something_else_sent_again_is_not_taken_for_anothers(
    store: HttpHarness,
) -> None:
    await know_bucket(store)
    store.proxy.plan(store.put_match, Fault.SENT_TWICE)
    await put(store)
    assert store.calls == ["PUT", "HEAD"]


async def test_equal_bytes_of_another_writer_exist_already_also_after_a_lost_answer(
    store: HttpHarness,
) -> None:
    created = NewObject(store.at("a"), b"content")
    await store.rival.create([created])
    store.proxy.plan(store.put_match, Fault.CUT_ANSWER)
    with pytest.raises(AlreadyExistsError):
        await store.storage.create([created])
    assert not await create_or_equal(store.storage, created)


async def test_a_create_in_doubt_whose_object_is_gone_is_unknown(store: HttpHarness) -> None:
    async def delete() -> None:
        await store.rival.delete([store.at("a")])

    store.proxy.plan(store.put_match, Fault.CUT_ANSWER, store.failed_condition)
    store.world.meanwhile = delete
    with pytest.raises(StorageUnavailableError, match="perhaps written"):
        await put(store)


async def test_a_create_that_was_given_up_may_land_late_and_is_found_equal(
    store: HttpHarness,
) -> None:
    store.proxy.plan(store.put_match, *[Fault.LANDS_LATE] * 3)
    with pytest.raises(StorageUnavailableError, match="/a`"):
        await put(store)
    assert store.calls == ["PUT"] * 3
    first, *others = await store.proxy.land_late()
    assert first in (200, 201)
    assert set(others) <= {409, 412}
    assert not await create_or_equal(store.storage, NewObject(store.at("a"), b"content"))


async def test_a_first_try_that_lands_late_changes_nothing(store: HttpHarness) -> None:
    etag = await store.storage.replace(store.at("a"), b"one", etag=None)
    store.proxy.plan(store.put_match, Fault.LANDS_LATE)
    await store.storage.replace(store.at("a"), b"two", etag=etag)
    assert await store.proxy.land_late() == [412]
    assert await store.storage.get(store.at("a")) == b"two"


async def test_a_replacement_whose_answer_was_lost_returns_the_new_etag(
    store: HttpHarness,
) -> None:
    etag = await store.storage.replace(store.at("a"), b"one", etag=None)
    store.proxy.plan(store.put_match, Fault.CUT_ANSWER)
    second = await store.storage.replace(store.at("a"), b"two", etag=etag)
    assert second == (await store.storage.head(store.at("a"))).etag != etag


async def test_a_replacement_in_doubt_that_was_replaced_since_is_unknown(
    store: HttpHarness,
) -> None:
    etag = await store.storage.replace(store.at("a"), b"one", etag=None)

    async def replace_again() -> None:
        current = (await store.rival.head(store.at("a"))).etag
        await store.rival.replace(store.at("a"), b"three", etag=current)

    store.proxy.plan(store.put_match, Fault.CUT_ANSWER)
    store.world.meanwhile = replace_again
    with pytest.raises(StorageUnavailableError, match="perhaps replaced"):
        await store.storage.replace(store.at("a"), b"two", etag=etag)
    assert await store.storage.get(store.at("a")) == b"three"


@pytest.mark.parametrize("fault", [Fault.CUT_REQUEST, Fault.CUT_ANSWER, Fault.CUT_IN_ANSWER])
async def test_reads_and_deletions_are_sent_again(store: HttpHarness, fault: Fault) -> None:
    await put(store)
    store.proxy.plan(store.get_match, fault)
    assert await store.storage.get(store.at("a")) == b"content"
    store.proxy.plan(b"/", Fault.CUT_ANSWER)
    await store.storage.head(store.at("a"))
    store.proxy.plan(b"prefix=", fault)
    assert [info.location async for info in store.storage.list(store.root)] == [store.at("a")]
    store.proxy.plan(b"DELETE ", Fault.CUT_ANSWER)
    await store.storage.delete([store.at("a")])
    assert [info async for info in store.storage.list(store.root)] == []


@pytest.mark.parametrize("round_number", range(20))
async def test_of_many_clients_that_write_one_object_exactly_one_does(
    store: HttpHarness, round_number: int
) -> None:
    storages = [store.storage, store.rival]
    contents = [f"{number}".encode() for number in range(20)]

    async def replace(number: int, etag: str | None) -> str:
        return await storages[number % 2].replace(store.at("a"), contents[number], etag=etag)

    etag: str | None = None
    for _ in range(2):
        calls = [replace(number, etag) for number in range(20)]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        (won,) = [number for number, answer in enumerate(answers) if isinstance(answer, str)]
        assert sum(isinstance(answer, AlreadyExistsError) for answer in answers) == 19, answers
        assert await store.storage.get(store.at("a")) == contents[won]
        etag = (await store.storage.head(store.at("a"))).etag
        assert etag == answers[won]


# --- Damage, overload ----------------------------------------------------------------------------


async def test_bytes_that_were_damaged_on_their_way_back_are_read_again(
    store: HttpHarness,
) -> None:
    await put(store)
    store.calls.clear()
    store.proxy.plan(store.get_match, Fault.DAMAGE_ANSWER)
    assert await store.storage.get(store.at("a")) == b"content"
    assert store.calls == ["GET", "GET"]
    store.proxy.plan(store.get_match, *[Fault.DAMAGE_ANSWER] * 3)
    with pytest.raises(StorageUnavailableError, match="checksum"):
        await store.storage.get(store.at("a"))


@pytest.mark.parametrize("status", [429, 503])
async def test_who_is_told_to_slow_down_does_so_and_gives_up_after_eight_times(
    store: HttpHarness, status: int
) -> None:
    answer = Answer(status, b"slow down")
    store.proxy.plan(store.put_match, *[answer] * 8)
    await put(store)
    assert store.calls == ["PUT"] * 9
    assert 5.0 < store.world.monotonic_s() < 20.0
    store.proxy.plan(store.put_match, *[answer] * 9)
    with pytest.raises(StorageUnavailableError, match="/b`"):
        await put(store, "b")
    assert store.calls == ["PUT"] * 9


async def test_who_was_only_told_to_slow_down_is_not_in_doubt(store: HttpHarness) -> None:
    etag = await store.storage.replace(store.at("a"), b"one", etag=None)
    await store.rival.replace(store.at("a"), b"two", etag=etag)
    store.proxy.plan(store.put_match, Answer(429))
    with pytest.raises(AlreadyExistsError):
        await store.storage.replace(store.at("a"), b"three", etag=etag)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(500),
        Answer(502, b"<html>bad gateway</html>"),
        Answer(504, b"no answer"),
        Answer(408),
    ],
    ids=lambda answer: str(answer.status),
)
async def test_a_broken_server_is_asked_three_times(store: HttpHarness, answer: Answer) -> None:
    await put(store)
    store.calls.clear()
    store.proxy.plan(store.get_match, *[answer] * 2)
    assert await store.storage.get(store.at("a")) == b"content"
    store.proxy.plan(store.get_match, *[answer] * 3)
    with pytest.raises(StorageUnavailableError, match="/a`"):
        await store.storage.get(store.at("a"))
    assert store.calls == ["GET"] * 6


async def test_the_answer_of_a_gateway_is_never_taken_for_done(store: HttpHarness) -> None:
    page = Answer(200, b"<html>please log in</html>", "text/html")
    store.proxy.plan(store.put_match, *[page] * 3)
    with pytest.raises(StorageUnavailableError, match="another server"):
        await put(store)
    with pytest.raises(NotFoundError):
        await store.rival.head(store.at("a"))
    store.proxy.plan(b"prefix=", *[page] * 3)
    with pytest.raises(StorageUnavailableError, match="another server"):
        await anext(store.storage.list(store.root))
    await store.rival.create([NewObject(store.at("a"), b"")])
    store.proxy.plan(b"DELETE ", *[page] * 3)
    with pytest.raises(StorageUnavailableError, match="another server"):
        await store.storage.delete([store.at("a")])


async def test_each_refusal_of_a_deletion_is_its_objects_own(store: HttpHarness) -> None:
    await know_bucket(store)
    names = [store.at(name) for name in ("a", "b", "c")]
    await store.rival.create([NewObject(name, b"") for name in names])
    store.proxy.plan(b"DELETE ", store.refuse(403, "forbidden"))
    with pytest.raises(UndeletedError) as caught:
        await store.storage.delete(names)
    ((held, error),) = caught.value.failures.items()
    assert isinstance(error, AccessError)
    assert [found.location async for found in store.rival.list(store.root)] == [held]
    # A server that is away is not asked for each of many objects.
    store.proxy.plan(b"DELETE ", *[Answer(500)] * 10_000)
    many = [store.at(f"absent-{number}") for number in range(500)]
    store.proxy.received.clear()
    with pytest.raises(UndeletedError) as caught:
        await store.storage.delete(many)
    assert sorted(caught.value.failures) == sorted(many)
    assert len(store.calls) < 3 * 200


async def test_the_404_of_a_gateway_is_no_absent_object(store: HttpHarness) -> None:
    await put(store)
    store.proxy.plan(b"/", *[Answer(404, b"<html>not found</html>", "text/html")] * 6)
    for look in (store.storage.head, store.storage.get):
        with pytest.raises((AccessError, StorageUnavailableError)):
            await look(store.at("a"))


# --- Refusals ------------------------------------------------------------------------------------


async def test_a_bucket_that_there_is_not_is_named(store: HttpHarness) -> None:
    location = f"{store.missing_root}/a"
    calls: list[Awaitable[object]] = [
        store.storage.get(location),
        store.storage.head(location),
        store.storage.create([NewObject(location, b"")]),
        store.storage.replace(location, b"", etag="1"),
        store.storage.delete([location]),
        anext(store.storage.list(store.missing_root)),
    ]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(answer) for answer in answers] == [AccessError] * len(calls), answers
    assert all("create it, or correct the location" in str(answer) for answer in answers)


@pytest.mark.parametrize("status", [400, 401, 403])
async def test_a_refusal_says_what_to_do_and_is_not_repeated(
    store: HttpHarness, status: int
) -> None:
    answer = store.refuse(status, "SaidByTheTest")
    calls: list[Awaitable[object]] = [
        store.storage.get(store.at("a")),
        store.storage.head(store.at("a")),
        store.storage.create([NewObject(store.at("a"), b"")]),
        store.storage.delete([store.at("a")]),
        anext(store.storage.list(store.root)),
    ]
    store.proxy.plan(b"/", *[answer] * len(calls))
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(found) for found in answers] == [AccessError] * len(calls), answers
    assert len(store.calls) == len(calls)
    expected = {400: "refused", 401: "renew", 403: "permission"}[status]
    assert all(expected in str(found) for found in answers), answers


ADLS = pytest.mark.timeout(TEST_S_MAX)


@pytest.mark.parametrize(
    ("store", "status", "code", "expected"),
    [
        ("gcs", 403, "retentionPolicyNotMet", "retention policy or a hold"),
        ("gcs", 403, "objectUnderActiveHold", "retention policy or a hold"),
        ("gcs", 403, "accountDisabled", "billing"),
        ("gcs", 400, "userProjectMissing", "the reader pay"),
        *(
            pytest.param("adls", *refusal, marks=ADLS)
            for refusal in (
                (412, "LeaseIdMissing", "a lease is on the object: break it"),
                (409, "BlobImmutableDueToPolicy", "immutability policy"),
                (409, "BlobArchived", "archive tier"),
                (403, "AuthenticationFailed", "clock"),
                (403, "KeyBasedAuthenticationNotPermitted", "use an identity"),
                (400, "InvalidResourceName", "3 to 63 lower-case letters"),
            )
        ),
    ],
    indirect=["store"],
)
async def test_a_refusal_that_a_store_names_has_its_own_sentence_and_is_not_repeated(
    store: HttpHarness, status: int, code: str, expected: str
) -> None:
    etag = await store.storage.replace(store.at("a"), b"one", etag=None)
    store.proxy.received.clear()
    writes: list[Callable[[], Awaitable[object]]] = [
        lambda: store.storage.create([NewObject(store.at("b"), b"")]),
        lambda: store.storage.replace(store.at("a"), b"two", etag=etag),
        lambda: store.storage.delete([store.at("a")]),
    ]
    for write in writes:
        store.proxy.plan(b"/", store.refuse(status, code))
        with pytest.raises(AccessError, match=expected) as caught:
            await write()
        assert "\n" not in str(caught.value)
    assert store.calls == ["PUT", "PUT", "DELETE"]
    assert await store.rival.get(store.at("a")) == b"one"


@pytest.mark.parametrize("store", [pytest.param("adls", marks=ADLS)], indirect=True)
async def test_what_azure_says_beside_its_code_is_passed_on_without_more_lines(
    store: HttpHarness,
) -> None:
    said = b"<Error><Code>X</Code><Message>The API version is odd.\nRequestId:1</Message></Error>"
    code = (("x-ms-error-code", "InvalidHeaderValue"),)
    store.proxy.plan(b"/", Answer(400, said, "application/xml", code))
    with pytest.raises(AccessError, match=r"InvalidHeaderValue: The API version is odd\.$"):
        await store.storage.get(store.at("a"))


@pytest.mark.parametrize("store", [pytest.param("adls", marks=ADLS)], indirect=True)
async def test_a_lease_on_an_object_keeps_it_and_is_named(
    store: HttpHarness, azurite: Azurite
) -> None:
    """Lease a blob as another tool might, on the emulator."""
    etag = await store.rival.replace(store.at("a"), b"one", etag=None)
    await azurite.lease(store.at("a"))
    writes: list[Callable[[], Awaitable[object]]] = [
        lambda: store.storage.replace(store.at("a"), b"two", etag=etag),
        lambda: store.storage.delete([store.at("a")]),
    ]
    for write in writes:
        with pytest.raises(AccessError, match="a lease is on the object"):
            await write()
    with pytest.raises(AlreadyExistsError):
        await store.storage.create([NewObject(store.at("a"), b"two")])
    assert await store.storage.get(store.at("a")) == b"one"


@pytest.mark.parametrize("store", [pytest.param("adls", marks=ADLS)], indirect=True)
@pytest.mark.parametrize("name", ["ab", "Upper", "double--hyphen", "-first"])
async def test_a_name_that_no_container_can_have_is_refused_in_one_sentence(
    store: HttpHarness, name: str
) -> None:
    location = store.at("a").replace("frazil@", f"{name}@")
    with pytest.raises((AccessError, SettingsError)) as caught:
        await store.storage.create([NewObject(location, b"")])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("store", ["gcs"], indirect=True)
async def test_an_object_of_google_that_is_described_as_gzip_is_read_as_it_is_stored(
    store: HttpHarness, gcs_server: GcsServer
) -> None:
    content = gzip.compress(b"content" * 100)
    await asyncio.to_thread(gcs_server.put_gzip, store.at("a"), content)
    assert await store.storage.get(store.at("a")) == content
    assert await store.storage.get(store.at("a"), offset=1, length=3) == content[1:4]
    assert (await store.storage.head(store.at("a"))).size_bytes == len(content)


@pytest.mark.parametrize(
    "name", ["../up", "a/../b", "a/./b", ".", "..", "a//b", "sp ace ", "%2e%2e/x"]
)
async def test_a_key_is_taken_letter_for_letter_or_refused(store: HttpHarness, name: str) -> None:
    beside = [NewObject(store.at(f"keep/{each}"), b"kept") for each in ("up", "b", "x")]
    await store.rival.create(beside)
    location = store.at(f"keep/{name}")
    try:
        await store.storage.create([NewObject(location, b"odd")])
    except SettingsError:
        with pytest.raises(NotFoundError):
            await store.storage.get(location)
    else:
        assert await store.storage.get(location) == b"odd"
        assert location in [info.location async for info in store.storage.list(store.root)]
        await store.storage.delete([location])
        with pytest.raises(NotFoundError):
            await store.storage.get(location)
    for kept in beside:
        assert await store.storage.get(kept.location) == b"kept"
