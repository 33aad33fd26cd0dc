"""AWS clients for the adapters: made from the usual AWS settings, and what their errors mean.

Credentials, role, web identity, profile, region and endpoints come from where every AWS tool finds
them (environment, `~/.aws`, container, instance). The options here only override them. Clients
never resend by themselves: an adapter resends what may safely be repeated, and knows that it did.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, overload

from aiobotocore.config import AioConfig
from aiobotocore.session import AioSession
from botocore import exceptions as boto

from committer.errors import AccessError, FrazilError, SettingsError, TransientError

if TYPE_CHECKING:
    from types_aiobotocore_dynamodb import DynamoDBClient
    from types_aiobotocore_s3 import S3Client

AddressingStyle = Literal["auto", "path", "virtual"]


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

    Errors: `SettingsError` for an unknown profile, a missing region or a malformed endpoint.
    """
    config = AioConfig(
        retries={"mode": "standard", "total_max_attempts": 1},
        max_pool_connections=options.connections_max,
        connect_timeout=options.connect_timeout_s,
        read_timeout=options.read_timeout_s,
        s3={"addressing_style": options.addressing_style},
        tcp_keepalive=True,
    )
    try:
        session = AioSession(profile=options.profile or None)
        context = session.create_client(
            service,
            # The one variable of all other AWS tools that this library does not read.
            region_name=options.region or os.environ.get("AWS_REGION") or None,
            endpoint_url=options.endpoint_url or None,
            config=config,
        )
        return await context.__aenter__()
    except boto.ProfileNotFound as error:
        raise SettingsError(
            f"{error}: name one of `~/.aws/config` (aws.profile, AWS_PROFILE)"
        ) from error
    except boto.NoRegionError as error:
        raise SettingsError("no AWS region: set aws.region or AWS_REGION") from error
    except (boto.BotoCoreError, ValueError) as error:
        raise SettingsError(f"no client for {service}: {error}") from error


async def close_client(client: S3Client | DynamoDBClient) -> None:
    """Release the client's connections."""
    await client.__aexit__(None, None, None)


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
        "TemporaryRedirect",
        "301",
        "307",
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
_NOT_SENT = (
    boto.EndpointConnectionError,
    boto.ConnectTimeoutError,
    boto.ProxyConnectionError,
    boto.NoCredentialsError,
    boto.PartialCredentialsError,
    boto.CredentialRetrievalError,
    boto.TokenRetrievalError,
    boto.ParamValidationError,
)
AwsError = boto.BotoCoreError | boto.ClientError
AWS_ERRORS = (boto.BotoCoreError, boto.ClientError)


def code_of(error: Exception) -> str:
    """The service's error code; empty where no service answered."""
    if not isinstance(error, boto.ClientError):
        return ""
    return str(error.response.get("Error", {}).get("Code", ""))


def status_of(error: Exception) -> int:
    """The HTTP status of the answer; 0 without an answer."""
    if not isinstance(error, boto.ClientError):
        return 0
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def is_throttled(error: Exception) -> bool:
    """The service asked to be called less often; it has applied nothing."""
    return code_of(error) in _THROTTLED or status_of(error) == 429


def surely_not_applied(error: Exception) -> bool:
    """Nothing was sent, or the service answered that it refused. Else it may have applied it, or
    may still.
    """
    if isinstance(error, boto.ClientError):
        return is_throttled(error) or 300 <= status_of(error) < 500
    return isinstance(error, _NOT_SENT)


def explain(error: Exception, what: str, unavailable: type[TransientError]) -> FrazilError:
    """The error of ours for one of the client's. `what` names the call and the thing it was about.

    Answers that mean something only to the caller (not found, precondition failed) are his to
    catch before.
    """
    code = code_of(error)
    if code in _ACCESS:
        return AccessError(f"{what}: {_ACCESS[code]} ({code})")
    if isinstance(error, boto.NoCredentialsError | boto.PartialCredentialsError):
        return AccessError(f"{what}: no AWS credentials were found; set a role, profile or keys")
    if isinstance(error, boto.CredentialRetrievalError | boto.TokenRetrievalError):
        return AccessError(f"{what}: the AWS credentials cannot be renewed: {error}")
    if code in _WRONG_REGION:
        return SettingsError(f"{what}: {_wrong_region(error)}")
    if is_throttled(error):
        return unavailable(f"{what}: throttled ({code or status_of(error)})")
    if status_of(error) == 403:
        return AccessError(f"{what}: refused ({code or 403})")
    return unavailable(f"{what}: {_brief(error)}")


def _wrong_region(error: Exception) -> str:
    headers: dict[str, str] = {}
    if isinstance(error, boto.ClientError):
        headers = dict(error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {}))
    region = headers.get("x-amz-bucket-region")
    where = f"it is in region `{region}`" if region else "it is in another region"
    return f"{where}: set aws.region or AWS_REGION ({code_of(error)})"


def _brief(error: Exception) -> str:
    if isinstance(error, boto.ClientError):
        message = error.response.get("Error", {}).get("Message", "")
        return f"{code_of(error) or status_of(error)}: {message}".rstrip(": ")
    return f"{type(error).__name__}: {error}"
