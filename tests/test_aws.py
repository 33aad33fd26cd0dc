"""Clients of AWS: what they are made of, that they send once, and what their errors mean."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from botocore import exceptions as boto

from committer.aws import client as aws
from committer.aws.client import AddressingStyle, AwsOptions, close_client, open_client, read_body
from committer.aws.client_errors import (
    AWS_ERRORS,
    code_of,
    explain,
    is_passing,
    is_throttled,
    refusal,
    status_of,
    surely_not_applied,
)
from committer.errors import (
    AccessError,
    SettingsError,
    StorageUnavailableError,
)
from tests.support.servers.http_proxy import Answer, Fault, HttpProxy

NOWHERE = "http://127.0.0.1:1"


@pytest.fixture(autouse=True)
def usual_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide the AWS settings of this machine and its user."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")


def error_of(status: int, code: str = "", message: str = "", **headers: str) -> boto.ClientError:
    """Build an error as the library does; `_` in names of headers stands for `-`."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    response: Any = {
        "Error": {"Code": code, "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": named},
    }
    return boto.ClientError(response, "Operation")


# --- Options -------------------------------------------------------------------------------------


class SentError(Exception):
    """Instead of sending: the argument says where to."""


async def url_of(options: AwsOptions) -> str:
    """Return the URL to which a client of S3 sends a request for an object."""
    client = await open_client("s3", options)

    def stop(request: Any, **_: object) -> None:
        raise SentError(request.url)

    client.meta.events.register("before-send.s3", stop)
    try:
        with pytest.raises(SentError) as sent:
            await client.get_object(Bucket="bucket", Key="key")
    finally:
        await close_client(client)
    return str(sent.value)


async def test_a_bucket_is_named_in_the_host_or_in_the_path() -> None:
    host = "s3.eu-central-1.amazonaws.com"
    styles: dict[AddressingStyle, str] = {
        "auto": f"https://bucket.{host}/key",
        "virtual": f"https://bucket.{host}/key",
        "path": f"https://{host}/bucket/key",
    }
    for style, url in styles.items():
        assert await url_of(AwsOptions(region="eu-central-1", addressing_style=style)) == url
    options = AwsOptions(region="x", endpoint_url="http://storage:9000", addressing_style="virtual")
    assert await url_of(options) == "http://bucket.storage:9000/key"


async def test_the_region_is_taken_from_the_options_before_the_usual_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert "eu-west-1" in await url_of(AwsOptions())
    assert "eu-north-1" in await url_of(AwsOptions(region="eu-north-1"))
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    assert await url_of(AwsOptions()) == "https://bucket.s3.us-east-1.amazonaws.com/key"


async def test_a_profile_brings_its_region(tmp_path: Path) -> None:
    keys = "aws_access_key_id = id\naws_secret_access_key = secret\n"
    (tmp_path / "config").write_text(f"[profile work]\nregion = eu-south-1\n{keys}")
    assert "eu-south-1" in await url_of(AwsOptions(profile="work"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            AwsOptions(region="eu-central-1", profile="gone"),
            "gone.*profile-name, AWS_PROFILE",
        ),
        (AwsOptions(region="eu-central-1", endpoint_url="localhost:9000"), "localhost:9000"),
        (AwsOptions(region="not a region"), "not a region"),
    ],
)
async def test_settings_that_make_no_client_are_named(options: AwsOptions, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        await open_client("s3", options)


async def test_dynamodb_needs_a_region() -> None:
    with pytest.raises(SettingsError, match=r"no AWS region: set client\.region or"):
        await open_client("dynamodb", AwsOptions())


async def test_credentials_that_cannot_be_had_now_are_no_wrong_setting(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """They may be had later: nothing that waits is to blame, and nothing is to be given up."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    (tmp_path / "config").write_text("[default]\ncredential_process = false\n")
    with pytest.raises(
        AccessError, match="no client for s3: the AWS credentials cannot be renewed"
    ):
        await open_client("s3", AwsOptions(region="x"))


EXPIRED = (
    '{"Version": 1, "AccessKeyId": "a", "SecretAccessKey": "b", "SessionToken": "c",'
    ' "Expiration": "2020-01-01T00:00:00Z"}'
)


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        ("credential_process = cat {folder}/expired", "still expired"),
        (
            "role_arn = arn:aws:iam::123456789012:role/x\nweb_identity_token_file = {folder}/none",
            "No such file",
        ),
    ],
)
async def test_credentials_that_cannot_be_renewed_are_told_by_each_call_and_printed_by_nobody(
    profile: str,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    (tmp_path / "expired").write_text(EXPIRED)
    (tmp_path / "config").write_text(f"[default]\n{profile.format(folder=tmp_path)}\n")
    async with calls_of(NOWHERE) as calls:
        for call in calls.values():
            with pytest.raises(boto.CredentialRetrievalError, match=message) as caught:
                await call()
            assert surely_not_applied(caught.value)
            explained = explain(caught.value, "PUT `a`", StorageUnavailableError)
            assert type(explained) is AccessError
            assert "cannot be renewed" in str(explained)
    assert capfd.readouterr() == ("", "")


# --- Each call is sent once ----------------------------------------------------------------------


@asynccontextmanager
async def calls_of(url: str) -> AsyncIterator[dict[str, Callable[[], Awaitable[Any]]]]:
    options = AwsOptions(region="eu-central-1", endpoint_url=url, addressing_style="path")
    s3 = await open_client("s3", options)
    dynamodb = await open_client("dynamodb", options)

    async def get() -> bytes:
        answer = await s3.get_object(Bucket="bucket", Key="key")
        size_bytes = answer["ContentLength"]
        return await read_body(answer["Body"], size_bytes=size_bytes, read_timeout_s=20.0)

    try:
        yield {
            "PUT": lambda: s3.put_object(Bucket="bucket", Key="key", Body=b"content"),
            "GET": get,
            "HEAD": lambda: s3.head_object(Bucket="bucket", Key="key"),
            "POST": lambda: dynamodb.put_item(TableName="table", Item={}),
        }
    finally:
        await close_client(s3)
        await close_client(dynamodb)


def well(method: str) -> Answer:
    return Answer(200, b"{}") if method == "POST" else Answer(200, headers=(("ETag", "x"),))


TROUBLES = [
    Fault.CUT_REQUEST,
    Answer(500),
    Answer.s3_error(503, "SlowDown"),
    Answer.s3_error(400, "AuthorizationHeaderMalformed", x_amz_bucket_region="eu-north-1"),
    Answer.s3_error(301, "PermanentRedirect", x_amz_bucket_region="eu-north-1"),
]


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_no_layer_below_sends_a_call_again(trouble: Fault | Answer) -> None:
    async with HttpProxy(NOWHERE) as proxy, calls_of(proxy.url) as calls:
        for method, call in calls.items():
            proxy.received.clear()
            proxy.plan(b"", well(method), trouble)
            await call()  # from now on the connection is kept alive
            with pytest.raises(AWS_ERRORS):
                await call()
            assert len(proxy.received) == 2, method


async def test_a_small_body_is_sent_without_asking_first() -> None:
    async with HttpProxy(NOWHERE) as proxy:
        options = AwsOptions(region="x", endpoint_url=proxy.url, addressing_style="path")
        client = await open_client("s3", options)
        proxy.plan(b"", well("PUT"), well("PUT"))
        for size_bytes in (1_000, 1_000_000):
            await client.put_object(Bucket="bucket", Key="key", Body=bytes(size_bytes))
        await close_client(client)
        assert [each.header("expect") for each in proxy.received] == [None, "100-continue"]


# --- Classes of errors ---------------------------------------------------------------------------


async def test_a_connection_that_was_not_made_has_surely_applied_nothing() -> None:
    async with calls_of(NOWHERE) as calls:
        for call in calls.values():
            with pytest.raises(AWS_ERRORS) as caught:
                await call()
            assert surely_not_applied(caught.value)
            assert is_passing(caught.value)


@pytest.mark.parametrize("is_reset", [True, False])
async def test_a_connection_that_broke_leaves_it_open_what_was_applied(is_reset: bool) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if is_reset:
            writer.transport.abort()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, calls_of(url) as calls:
        for call in calls.values():
            with pytest.raises(AWS_ERRORS) as caught:
                await call()
            assert not surely_not_applied(caught.value)
            assert is_passing(caught.value)


async def test_an_answer_that_does_not_come_leaves_it_open_what_was_applied() -> None:
    async with HttpProxy(NOWHERE) as server, HttpProxy(server.url) as proxy:
        server.plan(b"", Answer(200, b"{}"))
        proxy.plan(b"", Fault.HOLD_ANSWER)
        options = AwsOptions(region="x", endpoint_url=proxy.url, read_timeout_s=0.01)
        client = await open_client("dynamodb", options)
        with pytest.raises(boto.ReadTimeoutError) as caught:
            await client.put_item(TableName="table", Item={})
        await close_client(client)
    assert not surely_not_applied(caught.value)


async def test_a_refusal_that_breaks_off_is_no_answer() -> None:
    async with (
        HttpProxy(NOWHERE) as server,
        HttpProxy(server.url) as proxy,
        calls_of(proxy.url) as calls,
    ):
        for method in ("GET", "PUT", "POST"):
            server.plan(b"", Answer.s3_error(404, "NoSuchKey"))
            proxy.plan(b"", Fault.CUT_IN_ANSWER)
            with pytest.raises(AWS_ERRORS) as caught:
                await calls[method]()
            assert is_passing(caught.value)
            assert not surely_not_applied(caught.value)


@pytest.mark.parametrize("size_bytes", [1_000, 300_000, 30_000_000])
async def test_a_server_that_takes_no_body_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch, size_bytes: int
) -> None:
    """Neither where it never says "continue", nor where it says nothing and reads nothing."""
    monkeypatch.setattr(aws, "_BYTES_A_SECOND_MIN", 1e12)
    ended = asyncio.Event()

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await ended.wait()
        writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    options = AwsOptions(
        region="x",
        endpoint_url=url,
        addressing_style="path",
        connect_timeout_s=0.05,
        read_timeout_s=0.05,
    )
    client = await open_client("s3", options)
    if size_bytes == 30_000_000:
        client.meta.events.register("before-call.s3", lambda params, **_: no_questions(params))
    with pytest.raises(boto.ReadTimeoutError) as caught:
        await client.put_object(Bucket="bucket", Key="key", Body=bytes(size_bytes))
    ended.set()
    await close_client(client)
    server.close()
    assert not surely_not_applied(caught.value)
    assert is_passing(caught.value)


@pytest.mark.parametrize("service", ["s3", "dynamodb"])
async def test_an_answer_that_trickles_without_end_has_a_time_that_its_size_allows(
    monkeypatch: pytest.MonkeyPatch, service: str
) -> None:
    monkeypatch.setattr(aws, "_BYTES_A_SECOND_MIN", 1e12)

    ended = asyncio.Event()
    tasks: list[asyncio.Task[None] | None] = []

    async def trickle(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.append(asyncio.current_task())
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\nETag: x\r\n\r\n"
        writer.write(head)
        with suppress(OSError):
            while not ended.is_set():
                writer.write(b".")
                await writer.drain()
                await asyncio.sleep(0.01)
        writer.close()

    server = await asyncio.start_server(trickle, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    options = AwsOptions(region="x", endpoint_url=url, addressing_style="path", read_timeout_s=1.0)

    async def read() -> None:
        if service == "s3":
            async with closing_client(await open_client("s3", options)) as client:
                answer = await client.get_object(Bucket="bucket", Key="key")
                await read_body(answer["Body"], size_bytes=1_000_000, read_timeout_s=1.0)
        else:
            async with closing_client(await open_client("dynamodb", options)) as client:
                await client.get_item(TableName="table", Key={})

    # Between two bytes there is always less than the limit: only that of the whole ends it.
    with pytest.raises(AWS_ERRORS) as caught:
        await asyncio.wait_for(read(), 600.0)
    ended.set()
    await asyncio.gather(*(task for task in tasks if task))
    server.close()
    assert is_passing(caught.value)


@asynccontextmanager
async def closing_client(client: Any) -> AsyncIterator[Any]:
    try:
        yield client
    finally:
        await close_client(client)


def no_questions(params: Any) -> None:
    params["headers"].pop("Expect", None)


async def test_a_stranger_who_says_well_done_is_not_believed() -> None:
    async with HttpProxy(NOWHERE) as proxy, calls_of(proxy.url) as calls:
        for call in calls.values():
            proxy.plan(b"", Answer(200, content_type="text/html"))
            with pytest.raises(AWS_ERRORS) as caught:
                await call()
            assert is_passing(caught.value)
            assert not surely_not_applied(caught.value)


@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize("body", [b'{"Item": {}', b'{"Iten": {}}', b""])
async def test_an_answer_of_dynamodb_that_was_damaged_on_the_way_is_no_answer(
    status: int, body: bytes
) -> None:
    """The library would read an empty answer: nothing is there, and nothing was done."""
    checksum = ("x-amz-crc32", str(crc32(b'{"Item": {}}')))
    async with HttpProxy(NOWHERE) as proxy, calls_of(proxy.url) as calls:
        proxy.plan(b"", Answer(status, body, headers=(checksum,)))
        with pytest.raises(AWS_ERRORS) as caught:
            await calls["POST"]()
    assert "checksum" in str(caught.value)
    assert is_passing(caught.value)
    assert not surely_not_applied(caught.value)


async def test_half_an_answer_of_a_dynamodb_that_sends_no_checksums_is_no_answer() -> None:
    async with HttpProxy(NOWHERE) as proxy, calls_of(proxy.url) as calls:
        proxy.plan(b"", Answer(200, b'{"Item": {'))
        with pytest.raises(AWS_ERRORS) as caught:
            await calls["POST"]()
    assert is_passing(caught.value)


APPLIED_NOTHING = [
    error_of(400, "ConditionalCheckFailedException"),
    error_of(400, "ProvisionedThroughputExceededException"),
    error_of(403, "AccessDenied"),
    error_of(412, "PreconditionFailed"),
    error_of(429),
    error_of(503, "SlowDown"),
    boto.NoCredentialsError(),
]
IN_DOUBT = [
    error_of(500, "InternalError"),
    error_of(403),
    error_of(408),
    error_of(408, "408"),
    error_of(502),
    error_of(503, "ServiceUnavailable"),
    error_of(504),
    boto.ReadTimeoutError(endpoint_url=NOWHERE),
    boto.ConnectionClosedError(endpoint_url=NOWHERE),
    boto.EndpointConnectionError(endpoint_url=NOWHERE, error=ConnectionResetError()),
]


def test_what_surely_applied_nothing_is_told_from_what_is_in_doubt() -> None:
    assert [error for error in APPLIED_NOTHING if not surely_not_applied(error)] == []
    assert [error for error in IN_DOUBT if surely_not_applied(error)] == []


PASSING = [
    *(error for error in IN_DOUBT if status_of(error) != 403),
    error_of(409, "ConditionalRequestConflict"),
    error_of(409, "OperationAborted"),
    error_of(429, "TooManyRequests"),
    error_of(400, "ThrottlingException"),
    error_of(400, "RequestTimeout"),
    error_of(400, "BadDigest"),
    error_of(400, "TransactionInProgressException"),
    error_of(307, "TemporaryRedirect"),
    refusal("InternalError", ""),
    refusal("ServiceUnavailable", ""),
    boto.FlexibleChecksumError(error_msg="other bytes"),
    boto.IncompleteReadError(actual_bytes=1, expected_bytes=2),
]
STAYING = [
    error_of(400, "ValidationException"),
    error_of(403, "AccessDenied"),
    error_of(404, "NoSuchBucket"),
    error_of(412, "PreconditionFailed"),
    error_of(501, "NotImplemented"),
    refusal("AccessDenied", ""),
    boto.NoCredentialsError(),
    boto.ParamValidationError(report="an empty key"),
]


def test_what_passes_by_itself_is_told_from_what_stays() -> None:
    assert [error for error in PASSING if not is_passing(error)] == []
    assert [error for error in STAYING if is_passing(error)] == []
    for error in PASSING:
        explained = explain(error, "PUT `a`", StorageUnavailableError)
        assert type(explained) is StorageUnavailableError
        assert str(explained).startswith("PUT `a`: ")
    for error in STAYING:
        assert type(explain(error, "PUT `a`", StorageUnavailableError)) is AccessError


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (error_of(403, "AccessDenied"), "PUT `a`: the role or user lacks the permission"),
        (error_of(400, "AccessDeniedException"), "lacks the permission"),
        (error_of(400, "ExpiredTokenException"), "have expired: renew them"),
        (error_of(403, "RequestTimeTooSkewed"), "clock is wrong: synchronize it"),
        (error_of(400, "InvalidSignatureException"), "this machine's clock is"),
        (error_of(404, "NoSuchBucket"), "no such bucket: create it, or correct the location"),
        (
            error_of(301, "PermanentRedirect", x_amz_bucket_region="eu-north-1"),
            "it is in region `eu-north-1`: set client.region or AWS_REGION",
        ),
        (error_of(301, "301"), "it is in another region: set client.region"),
        (error_of(418, "Teapot", "short and stout"), "refused: Teapot: short and stout"),
        (error_of(403), "refused: 403"),
        (boto.NoCredentialsError(), "no AWS credentials were found"),
        (
            boto.CredentialRetrievalError(provider="sso", error_msg="log in"),
            "cannot be renewed: .*log in",
        ),
    ],
)
def test_what_an_operator_has_to_do_is_said(error: Exception, message: str) -> None:
    explained = explain(error, "PUT `a`", StorageUnavailableError)
    assert type(explained) is AccessError
    with pytest.raises(AccessError, match=message):
        raise explained


def test_a_throttled_call_is_unavailable() -> None:
    for error in (error_of(503, "SlowDown"), error_of(400, "ThrottlingException"), error_of(429)):
        assert is_throttled(error)
        explained = explain(error, "PUT `a`", StorageUnavailableError)
        assert type(explained) is StorageUnavailableError
        assert "throttled" in str(explained)


def test_what_happened_is_told_in_one_short_line_without_the_librarys_names() -> None:
    page = boto.ClientError(
        {
            "Error": {"Code": "", "Message": "<?xml?>\n<Error>no</Error>\n" + "word " * 1000},
            "ResponseMetadata": {"HTTPStatusCode": 405},  # type: ignore[typeddict-item]
        },
        "PutObject",
    )
    said = str(explain(page, "PUT `a`", StorageUnavailableError))
    assert said.startswith("PUT `a`: refused: 405: <?xml?> <Error>no</Error> word")
    assert len(said) < 400
    away = boto.EndpointConnectionError(endpoint_url=NOWHERE)
    assert str(explain(away, "PUT `a`", StorageUnavailableError)) == (
        f'PUT `a`: Could not connect to the endpoint URL: "{NOWHERE}"'
    )


def test_an_error_without_an_answer_has_neither_code_nor_status() -> None:
    error = boto.ReadTimeoutError(endpoint_url=NOWHERE)
    assert (code_of(error), status_of(error)) == ("", 0)


async def test_missing_credentials_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    async with HttpProxy(NOWHERE) as proxy, calls_of(proxy.url) as calls:
        for method in ("PUT", "POST"):
            with pytest.raises(AWS_ERRORS) as caught:
                await calls[method]()
            assert surely_not_applied(caught.value)
            assert "no AWS credentials" in str(explain(caught.value, "", StorageUnavailableError))
        assert proxy.received == []
