"""AWS clients for the adapters: made from the usual AWS settings, and what their errors mean.

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
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from textwrap import shorten
from typing import TYPE_CHECKING, Any, Literal, overload

import aiohttp
from aiobotocore.config import AioConfig
from aiobotocore.httpsession import AIOHTTPSession
from aiobotocore.session import AioSession
from botocore import exceptions as boto
from botocore.parsers import ResponseParserError

from committer.aws_access import AddressingStyle
from committer.errors import AccessError, FrazilError, SettingsError, TransientError

if TYPE_CHECKING:
    from aiobotocore.response import StreamingBody
    from types_aiobotocore_dynamodb import DynamoDBClient
    from types_aiobotocore_s3 import S3Client

# What it would print of credentials, with a trace, is in the errors.
logging.getLogger("aiobotocore").addHandler(logging.NullHandler())
_SMALL_BYTES = 256 * 1024
_BRIEF_CHARS_MAX = 300
# What a connection carries at the least, even one of many on a slow line.
_BYTES_A_SECOND_MIN = 64 * 1024


@dataclass(frozen=True, slots=True)
class AwsOptions:
    """What overrides the usual AWS settings; an empty text leaves them as they are."""

    region: str = ""
    profile: str = ""
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
async def open_client(
    service: Literal["s3", "dynamodb"], options: AwsOptions
) -> S3Client | DynamoDBClient:
    """A client of the running event loop that sends each call once. Close it with `close_client`.

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
        context = session.create_client(
            service,
            # The one variable of all other AWS tools that this library does not read.
            region_name=options.region or os.environ.get("AWS_REGION") or None,
            endpoint_url=options.endpoint_url or None,
            config=config,
        )
        client = await context.__aenter__()
    except boto.ProfileNotFound as error:
        raise SettingsError(
            f"{error}: name one of `~/.aws/config` (aws.profile, AWS_PROFILE)"
        ) from error
    except boto.NoRegionError as error:
        raise SettingsError("no AWS region: set aws.region or AWS_REGION") from error
    except _STALE_CREDENTIALS as error:
        raise AccessError(f"no client for {service}: {_no_renewal(error)}") from error
    except (boto.BotoCoreError, ValueError) as error:
        raise SettingsError(f"no client for {service}: {error}") from error
    client.meta.events.register("before-call.s3", _stay_in_region)
    client.meta.events.register("before-call.s3", _send_small_bodies_at_once)
    client.meta.events.register("after-call.s3", _refuse_empty_answer)
    client.meta.events.register("after-call.dynamodb", _refuse_foreign_answer)
    return client


class _Session(AioSession):
    """Where the usual settings are found; without what the library raises that is not its own, when
    credentials cannot be renewed: whatever the provider raised, or that the new ones are expired.
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
        """By itself aiohttp waits for ever while a body is sent, or has to be asked for: it watches
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

    def _sent_s_max(self, request: Any) -> float | None:
        size_bytes = int(request.headers.get("Content-Length") or 0)
        if request.stream_output or not size_bytes:
            return None
        waits_s: float = self._timeout.sock_connect + self._timeout.sock_read  # type: ignore[attr-defined]
        return waits_s + size_bytes / _BYTES_A_SECOND_MIN


def _stay_in_region(context: dict[str, Any], **_: object) -> None:
    """Pretend that a call was redirected already: another region is to be told, not followed."""
    if redirect := context.get("s3_redirect"):
        redirect["redirected"] = True


# What no answer of S3 is without.
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
    """As `_refuse_foreign_answer`, for S3."""
    wanted = _ALWAYS_THERE.get(model.name)
    if wanted and http_response.status_code < 300 and wanted not in parsed:
        raise ResponseParserError(f"not S3 has answered {model.name}: no {wanted}")


def _refuse_foreign_answer(http_response: Any, **_: Any) -> None:
    """A gateway on the way may say 200 to anything; the library would take that for "done", or for
    an item that is not there.
    """
    content_type = http_response.headers.get("Content-Type", "")
    if http_response.status_code == 200 and not content_type.startswith("application/x-amz-json"):
        raise ResponseParserError(f"not DynamoDB has answered: content type `{content_type}`")


def _send_small_bodies_at_once(params: dict[str, Any], **_: object) -> None:
    """To ask the server first (`Expect: 100-continue`) costs a round trip, and saves only bytes."""
    body = params.get("body")
    if isinstance(body, BytesIO) and body.getbuffer().nbytes < _SMALL_BYTES:
        params["headers"].pop("Expect", None)


async def close_client(client: S3Client | DynamoDBClient) -> None:
    """Release the client's connections."""
    await client.__aexit__(None, None, None)


async def read_body(body: StreamingBody) -> bytes:
    """Read an answer's bytes to the end and check them: length, and checksum if one was sent.

    Errors: those of `AWS_ERRORS` only.
    """
    try:
        async with body as stream:
            content: bytes = await stream.read()
            return content
    except aiohttp.ClientError as error:
        raise boto.ResponseStreamingError(error=error) from error


# --- What errors mean ----------------------------------------------------------------------------

_ACCESS = {
    "AccessDenied": "the role or user lacks the permission",
    "AccessDeniedException": "the role or user lacks the permission",
    "AllAccessDisabled": "access to the resource is switched off",
    "AccountProblem": "there is a problem with the account",
    "ExpiredToken": "the credentials have expired: renew them",
    "ExpiredTokenException": "the credentials have expired: renew them",
    "InvalidAccessKeyId": "the access key is not known there",
    "InvalidClientTokenId": "the access key is not known there",
    "InvalidSignatureException": "the secret key is wrong, or this machine's clock is",
    "InvalidToken": "the session token is wrong",
    "KMSAccessDeniedException": "the role or user may not use the KMS key",
    "KMS.AccessDeniedException": "the role or user may not use the KMS key",
    "MissingAuthenticationToken": "there are no credentials",
    "MissingAuthenticationTokenException": "there are no credentials",
    "NoSuchBucket": "there is no such bucket: create it, or correct the location",
    "NotSignedUp": "the account may not use the service",
    "RequestExpired": "this machine's clock is wrong: synchronise it",
    "RequestTimeTooSkewed": "this machine's clock is wrong: synchronise it",
    "SignatureDoesNotMatch": "the secret key is wrong, or this machine's clock is",
    "TokenRefreshRequired": "the credentials have expired: renew them",
    "UnrecognizedClientException": "the access key or session token is not known there",
}
_WRONG_REGION = frozenset(
    {
        "AuthorizationHeaderMalformed",
        "IllegalLocationConstraintException",
        "MovedPermanently",
        "PermanentRedirect",
        "301",
    }
)
_THROTTLED = frozenset(
    {
        "BandwidthLimitExceeded",
        "LimitExceededException",
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "TooManyRequestsException",
    }
)
# Refused now, and to be tried again: another call was in the way, or the request came in damaged.
_PASSING = frozenset(
    {
        "BadDigest",
        "ConditionalRequestConflict",
        "IncompleteBody",
        "InternalError",
        "OperationAborted",
        "ReplicatedWriteConflictException",
        "RequestTimeout",
        "RequestTimeoutException",
        "ServiceUnavailable",
        "TransactionInProgressException",
        "XAmzContentChecksumMismatch",
        "XAmzContentSHA256Mismatch",
    }
)
_UNANSWERED = (
    boto.ConnectionError,
    boto.FlexibleChecksumError,
    boto.HTTPClientError,
    boto.IncompleteReadError,
    ResponseParserError,
)
_NO_CREDENTIALS = (boto.NoCredentialsError, boto.PartialCredentialsError)
_STALE_CREDENTIALS = (boto.CredentialRetrievalError, boto.SSOError, boto.TokenRetrievalError)
_NOT_SENT = (
    boto.ConnectTimeoutError,
    boto.ParamValidationError,
    boto.ProxyConnectionError,
    *_NO_CREDENTIALS,
    *_STALE_CREDENTIALS,
)
AwsError = boto.BotoCoreError | boto.ClientError | ResponseParserError
AWS_ERRORS = (boto.BotoCoreError, boto.ClientError, ResponseParserError)


def code_of(error: Exception) -> str:
    """The service's error code; empty where no service answered."""
    if not isinstance(error, boto.ClientError):
        return ""
    return str(error.response.get("Error", {}).get("Code", ""))


def answer_of(error: Exception) -> Mapping[str, Any]:
    """The service's answer in full; empty where no service answered."""
    return error.response if isinstance(error, boto.ClientError) else {}


def refusal(code: str, message: str) -> Exception:
    """The error of one item of an answer that is itself no error, for the questions below."""
    return boto.ClientError({"Error": {"Code": code, "Message": message}}, "one of many")


def status_of(error: Exception) -> int:
    """The HTTP status of the answer; 0 without an answer."""
    if not isinstance(error, boto.ClientError):
        return 0
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def is_throttled(error: Exception) -> bool:
    """The service asked to be called less often; it has applied nothing."""
    return code_of(error) in _THROTTLED or status_of(error) == 429


def is_passing(error: Exception) -> bool:
    """The same call may succeed later, without anybody's help: no answer, an overload, a crash."""
    if not isinstance(error, boto.ClientError):
        return isinstance(error, _UNANSWERED)
    status = status_of(error)
    return (
        is_throttled(error)
        or code_of(error) in _PASSING
        or status in (307, 408)
        or (status >= 500 and status != 501)  # a server that lacks the feature answers 501
    )


def surely_not_applied(error: Exception) -> bool:
    """Nothing was sent, or the service answered that it refused. Else it may have applied it, or
    may still: a gateway that has passed it on may lose patience and refuse in words of its own.
    """
    if isinstance(error, boto.ClientError):
        return is_throttled(error) or (_says_why(error) and 300 <= status_of(error) < 500)
    if isinstance(error, boto.ConnectionError):
        # Also raised for a connection that broke after the request was sent.
        cause = error.kwargs.get("error")
        if isinstance(cause, aiohttp.ClientConnectorError | socket.gaierror):
            return True
    return isinstance(error, _NOT_SENT)


def _says_why(error: Exception) -> bool:
    """Whether the answer has an error code of AWS: in place of a missing one stands the status."""
    code = code_of(error)
    return bool(code) and not code.isdecimal()


def explain(error: Exception, what: str, unavailable: type[TransientError]) -> FrazilError:
    """The error of ours for one of the client's. `what` names the call and the thing it was about.

    `unavailable` for what passes by itself; else `AccessError` saying what to do, because no
    request is to blame for it. Answers that mean something only to the caller (not found,
    precondition failed) are his to catch before.
    """
    code = code_of(error)
    if code in _ACCESS:
        return AccessError(f"{what}: {_ACCESS[code]} ({code})")
    if isinstance(error, _NO_CREDENTIALS):
        return AccessError(f"{what}: no AWS credentials were found; set a role, profile or keys")
    if isinstance(error, _STALE_CREDENTIALS):
        return AccessError(f"{what}: {_no_renewal(error)}")
    if code in _WRONG_REGION:
        return AccessError(f"{what}: {_wrong_region(error)}")
    if is_throttled(error):
        return unavailable(f"{what}: throttled ({code or status_of(error)})")
    if is_passing(error):
        return unavailable(f"{what}: {brief(error)}")
    return AccessError(f"{what}: refused: {brief(error)}")


def _no_renewal(error: Exception) -> str:
    return f"the AWS credentials cannot be renewed: {error}"


def _wrong_region(error: Exception) -> str:
    where = "it is in another region"
    if isinstance(error, boto.ClientError):
        headers = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
        told: Any = error.response.get("Error", {})
        if region := headers.get("x-amz-bucket-region") or told.get("Region"):
            where = f"it is in region `{region}`"
    return f"{where}: set aws.region or AWS_REGION ({code_of(error)})"


def brief(error: Exception) -> str:
    """What happened, in one short line: a server that is none of AWS may answer with a page."""
    if isinstance(error, boto.ClientError):
        message = error.response.get("Error", {}).get("Message", "")
        text = f"{code_of(error) or status_of(error)}: {message}".rstrip(": ")
    elif isinstance(error, boto.BotoCoreError):
        text = str(error)
    else:
        text = f"{type(error).__name__}: {error}"
    return shorten(text, _BRIEF_CHARS_MAX, placeholder=" …")
