"""AWS clients for the adapters, made from the usual AWS settings. Errors: `aws/client_errors.py`.

Credentials, role, web identity, profile, region and endpoints come from where every AWS tool finds
them (environment, `~/.aws`, container, instance). The options here only override them.

Clients never send anything twice by themselves: an adapter resends what may safely be repeated, and
knows that it did. Three layers below would: the library's retries (off by a setting), its redirects
to the region of a bucket, and aiohttp, which resends a PUT whose kept-alive connection breaks.
"""

from __future__ import annotations

import asyncio
import logging
import os
from dataclasses import dataclass, field
from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING, Any, Literal, overload
from urllib.parse import urlsplit
from zlib import crc32

import aiohttp
import orjson
from aiobotocore.config import AioConfig
from aiobotocore.httpsession import AIOHTTPSession
from aiobotocore.session import AioSession
from botocore import exceptions as boto
from botocore.loaders import Loader, create_loader
from botocore.parsers import ResponseParserError

from committer.aws.client_errors import AWS_ERRORS, STALE_CREDENTIALS, no_renewal
from committer.errors import AccessError, SettingsError

if TYPE_CHECKING:
    from aiobotocore.response import StreamingBody
    from types_aiobotocore_dynamodb import DynamoDBClient
    from types_aiobotocore_glue import GlueClient
    from types_aiobotocore_s3 import S3Client
    from types_aiobotocore_s3tables import S3TablesClient

    AwsClient = S3Client | DynamoDBClient | GlueClient | S3TablesClient

# Its log lines about credentials, with traces, only repeat the errors.
logging.getLogger("aiobotocore").addHandler(logging.NullHandler())
AddressingStyle = Literal["auto", "path", "virtual"]
AwsService = Literal["s3", "dynamodb", "glue", "s3tables"]
_SMALL_BYTES = 256 * 1024
# The least throughput of a connection, even of one of many on a slow line.
_BYTES_A_SECOND_MIN = 64 * 1024
# The size of an answer that is read with its head: an item, a page of a listing, a table.
_ANSWER_BYTES_MAX = 1024 * 1024


@dataclass(frozen=True, slots=True)
class AwsOptions:
    """Overrides of the usual AWS settings; an empty text overrides nothing."""

    region: str = ""
    profile: str = ""
    access_key_id: str = ""
    secret_access_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)
    endpoint_url: str = ""
    addressing_style: AddressingStyle = "auto"
    """How S3 buckets are named in requests; `path` for most servers that are not AWS."""
    connections_max: int = 64
    connect_timeout_s: float = 5.0
    read_timeout_s: float = 20.0


@overload
async def open_client(service: Literal["s3"], options: AwsOptions) -> S3Client: ...
@overload
async def open_client(service: Literal["dynamodb"], options: AwsOptions) -> DynamoDBClient: ...
@overload
async def open_client(service: Literal["glue"], options: AwsOptions) -> GlueClient: ...
@overload
async def open_client(service: Literal["s3tables"], options: AwsOptions) -> S3TablesClient: ...
async def open_client(service: AwsService, options: AwsOptions) -> AwsClient:
    """Open a client of the running event loop that sends each call once; `close_client` closes it.

    Errors: `SettingsError` for an unknown profile, a missing region or a malformed endpoint;
    `AccessError` where the credentials cannot be had.
    """
    config = AioConfig(
        retries={"mode": "standard", "total_max_attempts": 1},
        max_pool_connections=options.connections_max,
        connect_timeout=options.connect_timeout_s,
        read_timeout=options.read_timeout_s,
        s3={
            "addressing_style": options.addressing_style,
            # The global endpoint answers for young buckets with redirects.
            "us_east_1_regional_endpoint": "regional",
        },
        tcp_keepalive=True,
        http_session_cls=_SendsOnce,
    )
    try:
        session = _Session(profile=options.profile or None)
        data_path: Any = session.get_config_variable("data_path")
        session.register_component("data_loader", _descriptions(data_path))
        context = session.create_client(
            service,
            # The one variable of all other AWS tools that this library does not read.
            region_name=options.region or os.environ.get("AWS_REGION") or None,
            endpoint_url=options.endpoint_url or None,
            aws_access_key_id=options.access_key_id or None,
            aws_secret_access_key=options.secret_access_key or None,
            aws_session_token=options.session_token or None,
            config=config,
        )
        client = await context.__aenter__()
    except boto.ProfileNotFound as error:
        raise SettingsError(
            f"{error}: name one of `~/.aws/config` (client.profile-name, AWS_PROFILE)"
        ) from error
    except boto.NoRegionError as error:
        raise SettingsError("no AWS region: set client.region or AWS_REGION") from error
    except STALE_CREDENTIALS as error:
        raise AccessError(f"no client for {service}: {no_renewal(error)}") from error
    except (boto.BotoCoreError, ValueError) as error:
        raise SettingsError(f"no client for {service}: {error}") from error
    client.meta.events.register("before-call.s3", _stay_in_region)
    client.meta.events.register("before-call.s3", _send_small_bodies_at_once)
    client.meta.events.register("after-call.s3", _refuse_empty_answer)
    # The library awaits what handlers return, though their type does not say so.
    refuse: Any = _refuse_foreign_answer
    for judged in _CONTENT_TYPES:
        client.meta.events.register(f"after-call.{judged}", refuse)
    return client


@cache
def _descriptions(data_path: str | None) -> Loader:
    """Return the library's descriptions of services: megabytes, which all clients share."""
    return create_loader(data_path)


class _Session(AioSession):
    """Finds credentials where every AWS tool does. A renewal that fails raises an error of the
    library: never what a provider raised, nor that the new credentials are expired.
    """

    async def get_credentials(self) -> Any:  # type: ignore[override]  # typed as botocore's
        is_new = vars(self).get("_credentials") is None
        found: Any = super().get_credentials()
        credentials = await found
        if is_new and hasattr(credentials, "_protected_refresh"):
            renew, provider = credentials._protected_refresh, credentials.method

            async def renew_or_explain(is_mandatory: bool) -> None:
                try:
                    await renew(is_mandatory)
                except AWS_ERRORS:
                    raise
                except Exception as error:
                    raise boto.CredentialRetrievalError(
                        provider=provider, error_msg=str(error)
                    ) from error

            credentials._protected_refresh = renew_or_explain
        return credentials


class _SendsOnce(AIOHTTPSession):
    """The HTTP side of a client, without what aiohttp does by itself: it sends "repeatable" methods
    again, and waits for ever.
    """

    async def _get_session(self, proxy_url: str | None) -> aiohttp.ClientSession:
        session: aiohttp.ClientSession = await super()._get_session(proxy_url)  # type: ignore[misc]
        session._retry_connection = False
        return session

    async def send(self, request: Any) -> Any:
        """Send a request, and limit the time.
        By itself aiohttp waits for ever while a body is sent, or has to be asked for: it watches
        for the answer only once all is sent. And of a refusal that breaks off, where an object was
        asked for, the library raises errors that are not its own.
        """
        try:
            async with asyncio.timeout(self._sent_s_max(request)):
                response: Any = await super().send(request)
                if response.status_code >= 300:
                    await response.content
                return response
        except TimeoutError as error:
            raise boto.ReadTimeoutError(endpoint_url=request.url, error=error) from error
        except aiohttp.ClientError as error:
            raise boto.ConnectionClosedError(endpoint_url=request.url, error=error) from error

    def _sent_s_max(self, request: Any) -> float:
        """Return the time for a request and its answer, without the body where that is a stream."""
        size_bytes = int(request.headers.get("Content-Length") or 0)
        if not request.stream_output:
            size_bytes += _ANSWER_BYTES_MAX
        waits_s: float = self._timeout.sock_connect + self._timeout.sock_read  # type: ignore[attr-defined]
        return waits_s + size_bytes / _BYTES_A_SECOND_MIN


def _stay_in_region(context: dict[str, Any], **_: object) -> None:
    """Pretend that a call was redirected already: another region is reported, not followed."""
    if redirect := context.get("s3_redirect"):
        redirect["redirected"] = True


# The field that every answer of S3 to these operations has.
_ALWAYS_THERE = {
    "CompleteMultipartUpload": "ETag",
    "CreateMultipartUpload": "UploadId",
    "GetObject": "ETag",
    "HeadObject": "ETag",
    "ListObjectsV2": "IsTruncated",
    "PutObject": "ETag",
    "UploadPart": "ETag",
}


def _refuse_empty_answer(
    http_response: Any, parsed: dict[str, Any], model: Any, **_: object
) -> None:
    """Refuse an empty answer, as `_refuse_foreign_answer`, for S3."""
    wanted = _ALWAYS_THERE.get(model.name)
    if wanted and http_response.status_code < 300 and wanted not in parsed:
        raise ResponseParserError(f"not S3 has answered {model.name}: no {wanted}")


# The content type of each good answer of these services.
_CONTENT_TYPES = {
    "dynamodb": "application/x-amz-json",
    "glue": "application/x-amz-json",
    "s3tables": "application/json",
}


async def _refuse_foreign_answer(http_response: Any, model: Any, **_: Any) -> None:
    """Refuse the answer of another server: a gateway on the way may say 200 to anything, or damage
    an answer; the library would take that for "done", or for an item that is not there.
    """
    headers, content = http_response.headers, await http_response.content
    service = str(model.service_model.service_id)
    if (checksum := headers.get("x-amz-crc32")) and checksum != str(crc32(content)):
        raise ResponseParserError(
            f"an answer of {service} came in damaged: it has another checksum"
        )
    if http_response.status_code != 200 or model.output_shape is None:
        return
    content_type = headers.get("Content-Type", "")
    if not content_type.startswith(_CONTENT_TYPES[str(model.service_model.service_name)]):
        raise ResponseParserError(f"not {service} has answered: content type `{content_type}`")
    if not checksum and not _is_json(content):
        raise ResponseParserError(f"an answer of {service} came in damaged: it is not JSON")


def _is_json(content: bytes) -> bool:
    try:
        orjson.loads(content)
    except orjson.JSONDecodeError:
        return False
    return True


def _send_small_bodies_at_once(params: dict[str, Any], **_: object) -> None:
    """Send small bodies at once: to ask the server first (`Expect:
    100-continue`) costs a round trip, and saves only bytes."""
    body = params.get("body")
    if isinstance(body, BytesIO) and body.getbuffer().nbytes < _SMALL_BYTES:
        params["headers"].pop("Expect", None)


def is_aws(client: AwsClient) -> bool:
    """Return whether the client talks to AWS itself, and not to a server of its protocol."""
    host = urlsplit(client.meta.endpoint_url).hostname or ""
    return host.endswith((".amazonaws.com", ".amazonaws.com.cn", ".api.aws"))


async def close_client(client: AwsClient) -> None:
    """Release the client's connections."""
    await client.__aexit__(None, None, None)


async def read_body(body: StreamingBody, *, size_bytes: int, read_timeout_s: float) -> bytes:
    """Read an answer's bytes to the end and check them: length, and checksum if one was sent. It
    has a time that its size allows, however the bytes trickle.

    Errors: those of `AWS_ERRORS` only.
    """
    try:
        async with asyncio.timeout(read_timeout_s + size_bytes / _BYTES_A_SECOND_MIN):
            async with body as stream:
                content: bytes = await stream.read()
                return content
    except TimeoutError as error:
        raise boto.ResponseStreamingError(error=error) from error
    except aiohttp.ClientError as error:
        raise boto.ResponseStreamingError(error=error) from error
