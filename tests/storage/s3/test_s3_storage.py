"""Storage on S3 beyond the port: calls, lost answers, parts, overload, refusals."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable
from dataclasses import replace

import pytest

from committer.aws.client import AwsOptions
from committer.errors import (
    AccessError,
    AlreadyExistsError,
    NotFoundError,
    SettingsError,
    StorageUnavailableError,
    UndeletedError,
)
from committer.ports.storage import NewObject, create_or_equal
from committer.real_world import RealWorld
from committer.storage.s3.s3_calls import S3Limits
from committer.storage.s3.s3_storage import S3Storage
from tests.support.clock.worlds import ManualWorld
from tests.support.servers.http_proxy import Answer, Fault, HttpProxy
from tests.support.servers.s3_server import BUILT_S_MAX, OPEN_BUCKET, S3Server
from tests.support.storages.s3_harness import MEBIBYTE, SMALL_PARTS, S3Harness, s3_harness

pytestmark = pytest.mark.server

SLOW_DOWN = Answer.s3_error(503, "SlowDown")
BROKEN = Answer.s3_error(500, "InternalError")
RACED = Answer.s3_error(409, "ConditionalRequestConflict")


BUILT = (pytest.mark.heavy, pytest.mark.timeout(BUILT_S_MAX))


@pytest.fixture(params=["s3_server", pytest.param("versitygw", marks=BUILT)])
async def s3(request: pytest.FixtureRequest) -> AsyncIterator[S3Harness]:
    async with s3_harness(request.getfixturevalue(request.param)) as harness:
        yield harness


async def put(s3: S3Harness, name: str = "a", content: bytes = b"content") -> None:
    await s3.storage.create([NewObject(s3.at(name), content)])


# --- Calls ---------------------------------------------------------------------------------------


async def test_each_operation_is_as_many_calls_as_the_page_says(s3: S3Harness) -> None:
    storage = s3.storage
    await storage.create([])
    await storage.delete([])
    assert s3.calls == []
    await storage.create([NewObject(s3.at(name), b"content") for name in "abc"])
    assert s3.calls == ["PUT"] * 3
    assert await storage.get(s3.at("a")) == b"content"
    assert await storage.get(s3.at("a"), offset=2, length=2) == b"nt"
    assert await storage.get(s3.at("a"), offset=9) == b""
    assert s3.calls == ["GET"] * 3
    etag = (await storage.head(s3.at("a"))).etag
    assert s3.calls == ["HEAD"]
    await storage.replace(s3.at("a"), b"other", etag=etag)
    assert s3.calls == ["PUT"]
    assert await storage.get(s3.at("a"), length=0) == b""
    assert s3.calls == ["HEAD"]
    assert len([found async for found in storage.list(s3.root)]) == 3
    assert s3.calls == ["LIST"]
    await storage.delete([s3.at(name) for name in "abc"])
    assert s3.calls == ["DELETE"]
    with pytest.raises(NotFoundError):
        await storage.get(s3.at("a"))
    assert s3.calls == ["GET"]
    with pytest.raises(NotFoundError):
        await storage.head(s3.at("a"))
    assert s3.calls == ["HEAD", "GET"]
    assert s3.world.monotonic_s() == 0.0


async def test_a_failed_condition_costs_one_more_call(s3: S3Harness) -> None:
    await s3.rival.create([NewObject(s3.at("a"), b"content")])
    with pytest.raises(AlreadyExistsError):
        await put(s3)
    assert s3.calls == ["PUT", "HEAD"]
    with pytest.raises(AlreadyExistsError):
        await s3.storage.replace(s3.at("a"), b"other", etag='"invented"')
    assert s3.calls == ["PUT", "HEAD"]


async def test_a_write_carries_its_condition_its_checksum_and_its_mark(
    s3: S3Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REQUEST_CHECKSUM_CALCULATION", "when_required")
    etag = await s3.storage.replace(s3.at("a"), b"123456789", etag=None)
    await s3.storage.replace(s3.at("a"), b"", etag=etag)
    first, second = s3.proxy.received
    assert (first.header("if-none-match"), first.header("if-match")) == ("*", None)
    assert (second.header("if-none-match"), second.header("if-match")) == (None, etag)
    checksums = [request.header("x-amz-checksum-crc32") for request in (first, second)]
    assert checksums == ["y/Q5Jg==", "AAAAAA=="]
    marks = {request.header("x-amz-meta-frazil-write") for request in (first, second)}
    assert len(marks - {None}) == 2


async def test_keys_are_sent_letter_for_letter(s3: S3Harness) -> None:
    names = {
        "day=a%2Fb": "day%3Da%252Fb",
        "a//b": "a//b",
        "back\\slash": "back%5Cslash",
        "sp ace+plus": "sp%20ace%2Bplus",
        "ü?#&": "%C3%BC%3F%23%26",
    }
    for name in names:
        # Some servers do not take all of these.
        s3.proxy.plan(b"PUT ", Answer(200, headers=(("ETag", "x"),)))
        await put(s3, name)
    folder = s3.root.removeprefix("s3:/")
    paths = [request.path.removeprefix(f"{folder}/") for request in s3.proxy.received]
    assert paths == list(names.values())


async def test_no_call_is_made_for_a_location_that_no_object_can_have(s3: S3Harness) -> None:
    bad = ("", "/", "/folder/", "/" + "ä" * 600, "/\ud800", "/a\0b")
    keys = [f"s3://bucket{key}" for key in bad]
    for location in ("s3://", "s3://bucket name/a", "s3:/a", *keys):
        calls: list[Awaitable[object]] = [
            s3.storage.create([NewObject(s3.at("a"), b""), NewObject(location, b"")]),
            s3.storage.delete([s3.at("a"), location]),
        ]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(answer) for answer in answers] == [SettingsError] * len(calls), location
        # Looked for, a key that no object can have is an object that is not there.
        absent = NotFoundError if location in keys else SettingsError
        for look in (s3.storage.get, s3.storage.head):
            with pytest.raises(absent):
                await look(location)
    assert s3.calls == []


async def test_a_listing_and_a_deletion_go_page_by_page(s3: S3Harness) -> None:
    storage = s3.another(S3Limits(listed_max=2, deleted_max=2))
    names = [f"{number}" for number in range(5)]
    await s3.rival.create([NewObject(s3.at(name), b"") for name in names])
    found = [info.location async for info in storage.list(s3.root)]
    assert found == [s3.at(name) for name in names]
    assert s3.calls == ["LIST"] * 3
    await storage.delete(found)
    assert s3.calls == ["DELETE"] * 3
    assert [info async for info in storage.list(s3.root)] == []


async def test_marks_of_folders_are_not_listed(s3: S3Harness) -> None:
    await put(s3, "x/a")
    folder = s3.root.removeprefix(f"s3://{s3.server.bucket}/")
    await s3.client.put_object(Bucket=s3.server.bucket, Key=f"{folder}/x/")
    await s3.client.put_object(Bucket=s3.server.bucket, Key=f"{folder}/y/")
    assert [info.location async for info in s3.storage.list(s3.root)] == [s3.at("x/a")]


async def test_only_so_many_calls_are_under_way_at_once(s3: S3Harness) -> None:
    storage = s3.another(S3Limits(), connections_max=3)
    objects = [NewObject(s3.at(f"{number}"), b"") for number in range(12)]
    await asyncio.gather(storage.create(objects[:6]), storage.create(objects[6:]))
    assert s3.proxy.at_once_most == 3
    assert s3.calls == ["PUT"] * 12


async def test_after_an_error_no_further_object_is_created(s3: S3Harness) -> None:
    await s3.rival.create([NewObject(s3.at("0"), b"")])
    storage = s3.another(S3Limits(), connections_max=2)
    with pytest.raises(AlreadyExistsError):
        await storage.create([NewObject(s3.at(f"{number}"), b"") for number in range(20)])
    assert s3.proxy.at_once == 0
    assert len(s3.calls) < 10


# --- Lost answers and late landings --------------------------------------------------------------


async def test_a_created_object_whose_answer_was_lost_is_not_taken_for_anothers(
    s3: S3Harness,
) -> None:
    s3.proxy.plan(b"PUT ", Fault.CUT_ANSWER)
    await put(s3)
    assert s3.calls == ["PUT", "PUT", "HEAD"]
    assert await s3.storage.get(s3.at("a")) == b"content"


async def test_a_create_that_never_arrived_is_sent_again(s3: S3Harness) -> None:
    s3.proxy.plan(b"PUT ", Fault.CUT_REQUEST)
    await put(s3)
    assert s3.calls == ["PUT", "PUT"]


async def test_a_create_that_something_else_sent_again_is_not_taken_for_anothers(
    s3: S3Harness,
) -> None:
    s3.proxy.plan(b"PUT ", Fault.SENT_TWICE)
    await put(s3)
    assert s3.calls == ["PUT", "HEAD"]


async def test_equal_bytes_of_another_writer_exist_already_also_after_a_lost_answer(
    s3: S3Harness,
) -> None:
    created = NewObject(s3.at("a"), b"content")
    await s3.rival.create([created])
    s3.proxy.plan(b"PUT ", Fault.CUT_ANSWER)
    with pytest.raises(AlreadyExistsError):
        await s3.storage.create([created])
    assert not await create_or_equal(s3.storage, created)


async def test_a_create_in_doubt_whose_object_is_gone_is_unknown(s3: S3Harness) -> None:
    s3.proxy.plan(b"PUT ", Fault.CUT_ANSWER)
    s3.proxy.plan(b"HEAD ", Answer(404))
    s3.proxy.plan(b"GET ", Answer.s3_error(404, "NoSuchKey"))
    with pytest.raises(StorageUnavailableError, match="perhaps written"):
        await put(s3)


async def test_a_create_that_was_given_up_may_land_late_and_is_found_equal(s3: S3Harness) -> None:
    s3.proxy.plan(b"PUT ", *[Fault.LANDS_LATE] * 3)
    with pytest.raises(StorageUnavailableError, match="/a`"):
        await put(s3)
    assert s3.calls == ["PUT"] * 3
    assert await s3.proxy.land_late() == [200, 412, 412]
    assert not await create_or_equal(s3.storage, NewObject(s3.at("a"), b"content"))


async def test_a_first_try_that_lands_late_changes_nothing(s3: S3Harness) -> None:
    etag = await s3.storage.replace(s3.at("a"), b"one", etag=None)
    s3.proxy.plan(b"PUT ", Fault.LANDS_LATE)
    await s3.storage.replace(s3.at("a"), b"two", etag=etag)
    assert await s3.proxy.land_late() == [412]
    assert await s3.storage.get(s3.at("a")) == b"two"


async def test_a_replacement_whose_answer_was_lost_returns_the_new_etag(s3: S3Harness) -> None:
    etag = await s3.storage.replace(s3.at("a"), b"one", etag=None)
    s3.proxy.plan(b"PUT ", Fault.CUT_ANSWER)
    second = await s3.storage.replace(s3.at("a"), b"two", etag=etag)
    assert second == (await s3.storage.head(s3.at("a"))).etag != etag


async def test_a_replacement_in_doubt_that_was_replaced_since_is_unknown(s3: S3Harness) -> None:
    etag = await s3.storage.replace(s3.at("a"), b"one", etag=None)

    async def replace_again() -> None:
        current = (await s3.rival.head(s3.at("a"))).etag
        await s3.rival.replace(s3.at("a"), b"three", etag=current)

    s3.proxy.plan(b"PUT ", Fault.CUT_ANSWER)
    s3.world.meanwhile = replace_again
    with pytest.raises(StorageUnavailableError, match="perhaps replaced"):
        await s3.storage.replace(s3.at("a"), b"two", etag=etag)
    assert await s3.storage.get(s3.at("a")) == b"three"


@pytest.mark.parametrize("fault", [Fault.CUT_REQUEST, Fault.CUT_ANSWER, Fault.CUT_IN_ANSWER])
async def test_reads_and_deletions_are_sent_again(s3: S3Harness, fault: Fault) -> None:
    await put(s3)
    s3.proxy.plan(b"GET ", fault)
    assert await s3.storage.get(s3.at("a")) == b"content"
    s3.proxy.plan(b"HEAD ", Fault.CUT_ANSWER)
    await s3.storage.head(s3.at("a"))
    s3.proxy.plan(b"list-type", fault)
    assert len([info async for info in s3.storage.list(s3.root)]) == 1
    s3.proxy.plan(b"?delete", fault)
    await s3.storage.delete([s3.at("a")])
    assert s3.calls == ["PUT", *["GET"] * 2, *["HEAD"] * 2, *["LIST"] * 2, *["DELETE"] * 2]


@pytest.mark.parametrize("rivals", [12])
async def test_of_many_clients_that_create_one_object_exactly_one_does(
    s3: S3Harness, rivals: int
) -> None:
    storages = [s3.storage, s3.rival]

    async def create(number: int) -> None:
        created = NewObject(s3.at("a"), b"equal bytes")
        await storages[number % 2].create([created])

    answers = await asyncio.gather(*map(create, range(rivals)), return_exceptions=True)
    assert sum(answer is None for answer in answers) == 1
    assert sum(isinstance(answer, AlreadyExistsError) for answer in answers) == rivals - 1


# --- Damage --------------------------------------------------------------------------------------


async def test_bytes_that_were_damaged_on_their_way_back_are_read_again(
    s3: S3Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_RESPONSE_CHECKSUM_VALIDATION", "when_required")
    await put(s3)
    s3.proxy.plan(b"GET ", Fault.DAMAGE_ANSWER)
    assert await s3.storage.get(s3.at("a")) == b"content"
    assert s3.calls == ["PUT", "GET", "GET"]
    s3.proxy.plan(b"GET ", *[Fault.DAMAGE_ANSWER] * 3)
    with pytest.raises(StorageUnavailableError, match="checksum"):
        await s3.storage.get(s3.at("a"))


async def test_bytes_that_were_damaged_on_their_way_there_are_sent_again(s3: S3Harness) -> None:
    s3.proxy.plan(b"PUT ", Answer.s3_error(400, "BadDigest"))
    await put(s3)
    assert s3.calls == ["PUT", "PUT"]


# --- Overload ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [SLOW_DOWN, RACED, Answer.s3_error(429, "TooManyRequests"), Answer(503, b"overloaded")],
    ids=lambda answer: str(answer.status),
)
async def test_who_is_told_to_slow_down_does_so_and_gives_up_after_eight_times(
    s3: S3Harness, answer: Answer
) -> None:
    s3.proxy.plan(b"PUT ", *[answer] * 8)
    await put(s3)
    assert s3.calls == ["PUT"] * 9
    assert 5.0 < s3.world.monotonic_s() < 20.0
    s3.proxy.plan(b"PUT ", *[answer] * 9)
    with pytest.raises(StorageUnavailableError, match="/b`"):
        await put(s3, "b")
    assert s3.calls == ["PUT"] * 9


async def test_who_slows_down_keeps_his_place(s3: S3Harness) -> None:
    storage = s3.another(S3Limits(), connections_max=1)
    s3.proxy.plan(b"/a\n", *[SLOW_DOWN] * 3)
    await asyncio.gather(*(storage.create([NewObject(s3.at(name), b"")]) for name in "ab"))
    assert [request.path[-1] for request in s3.proxy.received] == ["a"] * 4 + ["b"]


@pytest.mark.parametrize(
    "answer",
    [
        BROKEN,
        Answer(502, b"<html>bad gateway</html>"),
        Answer(500),
        Answer(504, b"no XML at all"),
        Answer.s3_error(400, "RequestTimeout"),
        Answer(408),
        Answer(200, b"<html>please log in</html>"),
    ],
)
async def test_a_broken_server_is_asked_three_times(s3: S3Harness, answer: Answer) -> None:
    await put(s3)
    s3.proxy.plan(b"GET ", *[answer] * 2)
    assert await s3.storage.get(s3.at("a")) == b"content"
    s3.proxy.plan(b"GET ", *[answer] * 3)
    with pytest.raises(StorageUnavailableError, match="/a`"):
        await s3.storage.get(s3.at("a"))
    assert s3.calls == ["PUT"] + ["GET"] * 6


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    async with HttpProxy("http://127.0.0.1:1") as proxy:
        url = proxy.url
    options = AwsOptions(region="eu-central-1", endpoint_url=url, addressing_style="path")
    storage = S3Storage(options, world=ManualWorld())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "a")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "b")
        with pytest.raises(StorageUnavailableError):
            await storage.get("s3://bucket/key")
    await storage.close()


async def test_a_deletion_repeats_only_what_was_refused_for_a_while(s3: S3Harness) -> None:
    await s3.storage.create([NewObject(s3.at(name), b"") for name in "ab"])
    s3.proxy.plan(b"?delete", refused(s3, a="InternalError"))
    await s3.storage.delete([s3.at("a"), s3.at("b")])
    first, second = s3.proxy.received[2:]
    assert (b"/b<" in first.body, b"/b<" in second.body) == (True, False)
    assert b"/a<" in second.body
    assert [info.location async for info in s3.storage.list(s3.root)] == [s3.at("b")]


async def test_a_deletion_names_what_was_refused(s3: S3Harness) -> None:
    s3.proxy.plan(b"?delete", refused(s3, a="InternalError", b="AccessDenied", c="NoSuchKey"))
    await s3.rival.create([NewObject(s3.at(name), b"") for name in "ad"])
    with pytest.raises(UndeletedError, match=r"/b`: .*permission") as caught:
        await s3.storage.delete([s3.at(name) for name in "abcd"])
    assert list(caught.value.failures) == [s3.at("b")]
    assert isinstance(caught.value.failures[s3.at("b")], AccessError)
    first, second = s3.proxy.received
    assert (b"/d<" in first.body, b"/d<" in second.body, b"/a<" in second.body) == (
        True,
        False,
        True,
    )


async def test_each_refusal_of_a_deletion_is_kept_by_its_object(s3: S3Harness) -> None:
    storage = s3.another(S3Limits(deleted_max=2))
    await s3.rival.create([NewObject(s3.at(name), b"") for name in "abcde"])
    s3.proxy.plan(b"/a<", refused(s3, a="AccessDenied"))
    s3.proxy.plan(b"/c<", *[refused(s3, c="InternalError")] * 3)
    with pytest.raises(UndeletedError, match="and 1 more") as caught:
        await storage.delete([s3.at(name) for name in "abcde"])
    refusals = {name: type(why) for name, why in caught.value.failures.items()}
    assert refusals == {s3.at("a"): AccessError, s3.at("c"): StorageUnavailableError}


def refused(s3: S3Harness, **codes: str) -> Answer:
    folder = s3.root.removeprefix(f"s3://{s3.server.bucket}/")
    errors = "".join(
        f"<Error><Key>{folder}/{name}</Key><Code>{code}</Code><Message/></Error>"
        for name, code in codes.items()
    )
    body = f"<DeleteResult>{errors}</DeleteResult>".encode()
    return Answer(200, body, "application/xml")


# --- Parts ---------------------------------------------------------------------------------------


def large(seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(11 * MEBIBYTE)


async def test_a_large_object_is_written_in_parts(s3: S3Harness) -> None:
    storage = s3.another(SMALL_PARTS)
    etag = await storage.replace(s3.at("a"), large(), etag=None)
    assert s3.calls == ["BEGIN", *["PART"] * 3, "COMPLETE"]
    assert await storage.get(s3.at("a")) == large()
    middle = 7 * MEBIBYTE
    assert await storage.get(s3.at("a"), offset=middle, length=9) == large()[middle:][:9]
    assert (await storage.head(s3.at("a"))).etag == etag
    await storage.replace(s3.at("a"), large(2), etag=etag)
    assert await storage.get(s3.at("a")) == large(2)
    s3.proxy.plan(b"GET ", *[Fault.DAMAGE_ANSWER] * 3)
    with pytest.raises(StorageUnavailableError, match="checksum"):
        await storage.get(s3.at("a"))


async def test_parts_obey_the_condition_and_none_stay_behind(s3: S3Harness) -> None:
    storage = s3.another(SMALL_PARTS)
    await put(s3)
    for etag in (None, '"00000000000000000000000000000000"'):
        with pytest.raises(AlreadyExistsError):
            await storage.replace(s3.at("a"), large(), etag=etag)
    assert await s3.storage.get(s3.at("a")) == b"content"
    assert await s3.unfinished_uploads() == 0


async def test_parts_whose_completion_was_not_heard_of_are_found_complete(s3: S3Harness) -> None:
    storage = s3.another(SMALL_PARTS)
    s3.proxy.plan(b"<CompleteMultipartUpload", Fault.CUT_ANSWER)
    await storage.create([NewObject(s3.at("a"), large())])
    assert await s3.storage.get(s3.at("a")) == large()
    assert await s3.unfinished_uploads() == 0


async def test_parts_that_were_joined_and_are_no_longer_known_are_found_complete(
    s3: S3Harness,
) -> None:
    storage = s3.another(SMALL_PARTS)
    gone = Answer.s3_error(404, "NoSuchUpload")
    s3.proxy.plan(b"<CompleteMultipartUpload", Fault.CUT_ANSWER, gone)
    await storage.create([NewObject(s3.at("a"), large())])
    assert s3.calls == ["BEGIN", *["PART"] * 3, *["COMPLETE"] * 2, "ABORT", "HEAD"]
    assert await s3.storage.get(s3.at("a")) == large()


async def test_parts_that_somebody_has_removed_are_no_failed_condition(s3: S3Harness) -> None:
    storage = s3.another(SMALL_PARTS)
    s3.proxy.plan(b"partNumber=2", Answer.s3_error(404, "NoSuchUpload"))
    with pytest.raises(StorageUnavailableError, match="its upload was aborted"):
        await storage.create([NewObject(s3.at("a"), large())])


async def test_an_upload_that_was_in_the_way_of_another_begins_anew(s3: S3Harness) -> None:
    storage = s3.another(SMALL_PARTS)
    s3.proxy.plan(b"<CompleteMultipartUpload", RACED)
    await storage.create([NewObject(s3.at("a"), large())])
    once = ["BEGIN", *["PART"] * 3, "COMPLETE"]
    assert s3.calls == [*once, "ABORT", *once]
    s3.proxy.plan(b"<CompleteMultipartUpload", *[RACED] * 3)
    with pytest.raises(StorageUnavailableError, match="/b`"):
        await storage.create([NewObject(s3.at("b"), large())])
    assert await s3.unfinished_uploads() == 0


async def test_a_part_that_fails_takes_the_upload_away(s3: S3Harness) -> None:
    storage = s3.another(SMALL_PARTS)
    s3.proxy.plan(b"partNumber=2", *[BROKEN] * 3)
    with pytest.raises(StorageUnavailableError):
        await storage.create([NewObject(s3.at("a"), large())])
    assert s3.calls[-1] == "ABORT"
    assert await s3.unfinished_uploads() == 0
    with pytest.raises(NotFoundError):
        await s3.storage.head(s3.at("a"))


async def test_a_canceled_upload_is_taken_away(s3: S3Harness) -> None:
    storage = s3.another(SMALL_PARTS)
    s3.proxy.plan(b"partNumber=2", Fault.HOLD_ANSWER)
    upload = asyncio.create_task(storage.create([NewObject(s3.at("a"), large())]))
    await s3.proxy.struck.wait()
    upload.cancel()
    with pytest.raises(asyncio.CancelledError):
        await upload
    assert await s3.unfinished_uploads() == 0


# --- Refusals ------------------------------------------------------------------------------------

REFUSALS = [
    (Answer.s3_error(403, "AccessDenied"), "permission"),
    (Answer.s3_error(400, "ExpiredToken"), "expired: renew"),
    (Answer.s3_error(403, "RequestTimeTooSkewed"), "clock"),
    (Answer.s3_error(403, "SignatureDoesNotMatch"), "secret key"),
    (Answer.s3_error(403, "InvalidAccessKeyId"), "access key"),
    (Answer.s3_error(404, "NoSuchBucket"), "create it"),
    (
        Answer.s3_error(301, "PermanentRedirect", x_amz_bucket_region="eu-north-1"),
        "in region `eu-north-1`: set client.region",
    ),
    (
        Answer.s3_error(400, "AuthorizationHeaderMalformed", x_amz_bucket_region="eu-north-1"),
        "in region `eu-north-1`: set client.region",
    ),
    (Answer.s3_error(403, "InvalidObjectState"), "refused: InvalidObjectState"),
    (Answer.s3_error(400, "InvalidRequest"), "refused: InvalidRequest"),
]


@pytest.mark.parametrize(("answer", "message"), REFUSALS)
async def test_a_refusal_says_what_to_do_and_is_not_repeated(
    s3: S3Harness, answer: Answer, message: str
) -> None:
    calls: list[Awaitable[object]] = [
        s3.storage.get(s3.at("a")),
        put(s3),
        s3.storage.replace(s3.at("a"), b"", etag="x"),
        s3.storage.delete([s3.at("a")]),
        anext(s3.storage.list(s3.root)),
        s3.storage.probe(s3.root),
    ]
    for call in calls:
        s3.proxy.plan(b"", answer)
        with pytest.raises(AccessError, match=message):
            await call
    assert s3.calls == ["GET", "PUT", "PUT", "DELETE", "LIST", "PUT", "DELETE"]
    s3.proxy.plan(b"HEAD ", Answer(answer.status))  # it has no body that could say more
    s3.proxy.plan(b"GET ", answer)
    with pytest.raises(AccessError, match=message):
        await s3.storage.head(s3.at("a"))
    assert s3.world.monotonic_s() == 0.0


async def test_a_bucket_that_is_not_there_is_no_absent_object(s3: S3Harness) -> None:
    location = "s3://frazil-nowhere/a"
    calls: list[Awaitable[object]] = [
        s3.storage.get(location),
        s3.storage.head(location),
        s3.storage.create([NewObject(location, b"")]),
        s3.storage.replace(location, b"", etag="x"),
        anext(s3.storage.list(location)),
        s3.storage.probe(location),
    ]
    for answer in await asyncio.gather(*calls, return_exceptions=True):
        assert isinstance(answer, AccessError)
        assert "frazil-nowhere" in str(answer)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(404, b"<html>no such page</html>", "text/html"),
        Answer(404),
        Answer.s3_error(404, "NoSuchUpload"),
    ],
    ids=["page", "nothing", "other"],
)
async def test_only_s3_can_say_that_an_object_is_absent(s3: S3Harness, answer: Answer) -> None:
    """A wrong endpoint or a gateway that has lost its way says 404, too."""
    await put(s3)
    for match, call in ((b"GET ", s3.storage.get), (b"", s3.storage.head)):
        s3.proxy.plan(match, answer, answer)
        with pytest.raises(AccessError, match="/a`: refused"):
            await call(s3.at("a"))
        while s3.proxy.is_planned:
            with pytest.raises(AccessError):
                await s3.storage.get(s3.at("a"))


async def test_a_denied_read_says_that_the_object_may_be_absent(s3: S3Harness) -> None:
    s3.proxy.plan(b"", Answer.s3_error(403, "AccessDenied"))
    with pytest.raises(AccessError, match="s3:ListBucket"):
        await s3.storage.get(s3.at("a"))


async def test_a_wrong_secret_key_is_told(s3: S3Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    for call in (s3.storage.get(s3.at("a")), s3.storage.head(s3.at("a")), put(s3)):
        with pytest.raises(AccessError, match="the secret key is wrong"):
            await call


async def test_a_server_without_conditional_writes_is_refused(s3: S3Harness) -> None:
    s3.proxy.plan(b"PUT ", Answer.s3_error(501, "NotImplemented"))
    with pytest.raises(SettingsError, match="knows no conditional writes"):
        await s3.storage.probe(s3.root)


UNSIGNED = ("authorization", "x-amz-date", "x-amz-content-sha256")


@pytest.mark.parametrize(
    ("match", "header", "message"),
    [
        (b"PUT ", "if-none-match", "[0-9a-f]` ignores the condition `replace only if absent`"),
        (b"PUT ", "if-match", "[0-9a-f]` ignores the condition `replace only if unchanged`"),
        (b"POST ", "if-none-match", "in-parts` ignores the condition `replace only if absent`"),
        (b"POST ", "if-match", "in-parts` ignores the condition `replace only if unchanged`"),
    ],
)
async def test_a_server_that_ignores_a_condition_is_refused(
    s3: S3Harness, match: bytes, header: str, message: str
) -> None:
    if not s3.server.is_seaweedfs:
        pytest.skip("needs a bucket for everybody: a changed request has no signature")
    left_out = {b"": UNSIGNED, match: (header,)}
    async with HttpProxy(s3.server.url, leaves_out=left_out) as proxy:
        options = replace(s3.server.options, endpoint_url=proxy.url)
        storage = S3Storage(options, world=RealWorld())
        with pytest.raises(SettingsError, match=message):
            await storage.probe(f"s3://{OPEN_BUCKET}/probe")
        assert [info async for info in storage.list(f"s3://{OPEN_BUCKET}")] == []
        await storage.close()


async def test_the_probe_tries_whole_objects_and_parts(s3: S3Harness) -> None:
    await s3.storage.probe(s3.root)
    uploads = {"BEGIN": 5, "PART": 5, "COMPLETE": 5, "ABORT": 3}
    assert Counter(s3.calls) == {"PUT": 5, **uploads, "HEAD": 8, "GET": 2, "DELETE": 2}
    assert await s3.unfinished_uploads() == 0
    assert [info async for info in s3.storage.list(s3.root)] == []


# --- Another vendor ------------------------------------------------------------------------------


@pytest.mark.heavy
@pytest.mark.timeout(BUILT_S_MAX)
@pytest.mark.parametrize("round_number", range(20))
async def test_of_many_clients_that_write_one_object_exactly_one_does(
    versitygw: S3Server, round_number: int
) -> None:
    """Let 20 writers of two clients race to create an object, and then to replace it."""
    storages = [S3Storage(versitygw.options, world=RealWorld()) for _ in range(2)]
    location = f"{versitygw.new_root()}/{round_number}"
    contents = [f"{number}".encode() for number in range(20)]

    async def replace_it(number: int, etag: str | None) -> str:
        return await storages[number % 2].replace(location, contents[number], etag=etag)

    etag: str | None = None
    for _ in range(2):
        calls = [replace_it(number, etag) for number in range(20)]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        (won,) = [number for number, answer in enumerate(answers) if isinstance(answer, str)]
        assert sum(isinstance(answer, AlreadyExistsError) for answer in answers) == 19, answers
        assert await storages[0].get(location) == contents[won]
        etag = (await storages[1].head(location)).etag
        assert etag == answers[won]
        contents = [content + b" again" for content in contents]
    for storage in storages:
        await storage.close()


# --- The client ----------------------------------------------------------------------------------


async def test_a_storage_that_was_never_used_has_nothing_to_close(s3: S3Harness) -> None:
    storage = S3Storage(AwsOptions(profile="no such profile"), world=ManualWorld())
    await storage.close()
    await storage.close()
    with pytest.raises(SettingsError, match="no such profile"):
        await storage.get(s3.at("a"))


async def test_a_closed_storage_opens_again(s3: S3Harness) -> None:
    await put(s3)
    await s3.storage.close()
    assert await s3.storage.get(s3.at("a")) == b"content"


def test_a_storage_serves_one_event_loop_after_another(s3_server: S3Server) -> None:
    storage = S3Storage(s3_server.options, world=RealWorld())
    location = f"{s3_server.new_root()}/a"

    async def put_and_close() -> None:
        await storage.create([NewObject(location, b"content")])
        await storage.close()

    async def get_and_close() -> bytes:
        try:
            return await storage.get(location)
        finally:
            await storage.close()

    asyncio.run(put_and_close())
    assert asyncio.run(get_and_close()) == b"content"
