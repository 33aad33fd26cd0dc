"""Classifies errors of AWS clients for an adapter: applied or not, passing or not, and in words.

The clients are made in `aws/client.py`.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from textwrap import shorten
from typing import Any

import aiohttp
from botocore import exceptions as boto
from botocore.parsers import ResponseParserError

from committer.errors import AccessError, FrazilError, TransientError

_BRIEF_CHARS_MAX = 300
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
    "RequestExpired": "this machine's clock is wrong: synchronize it",
    "RequestTimeTooSkewed": "this machine's clock is wrong: synchronize it",
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
MISSING_CREDENTIALS = (
    "no AWS credentials were found; give the process a role, or set `client.profile-name`, or"
    " `client.access-key-id` and `client.secret-access-key`"
)
_NO_CREDENTIALS = (boto.NoCredentialsError, boto.PartialCredentialsError)
STALE_CREDENTIALS = (boto.CredentialRetrievalError, boto.SSOError, boto.TokenRetrievalError)
_NOT_SENT = (
    boto.ConnectTimeoutError,
    boto.ParamValidationError,
    boto.ProxyConnectionError,
    *_NO_CREDENTIALS,
    *STALE_CREDENTIALS,
)
AWS_ERRORS = (boto.BotoCoreError, boto.ClientError, ResponseParserError)


def code_of(error: Exception) -> str:
    """Return the service's error code; empty if no service answered."""
    return str(answer_of(error).get("Error", {}).get("Code", ""))


def answer_of(error: Exception) -> Mapping[str, Any]:
    """Return the service's answer in full; empty if no service answered."""
    return error.response if isinstance(error, boto.ClientError) else {}


def refusal(code: str, message: str) -> Exception:
    """Make the error of one item of an answer that is itself no error, for the questions below."""
    return boto.ClientError({"Error": {"Code": code, "Message": message}}, "one of many")


def status_of(error: Exception) -> int:
    """Return the HTTP status of the answer; 0 without an answer."""
    return int(answer_of(error).get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def is_throttled(error: Exception) -> bool:
    """Return whether the service asked to be called less often; it has applied nothing."""
    return code_of(error) in _THROTTLED or status_of(error) == 429


def is_passing(error: Exception) -> bool:
    """Return whether a retry may succeed without an operator: no answer, an overload, a crash."""
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
    """Return whether nothing was sent, or the service answered that it refused.
    Else it may have applied it, or may still: a gateway that has passed it on may lose patience and
    refuse in words of its own.
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
    """Return whether the answer has an error code of AWS:
    in place of a missing one stands the status."""
    code = code_of(error)
    return bool(code) and not code.isdecimal()


def explain(error: Exception, what: str, unavailable: type[TransientError]) -> FrazilError:
    """Translate an error of the client. `what` names the call and the thing it was about.

    `unavailable` for what passes by itself; else `AccessError` saying what to do, because no
    request is to blame for it. Answers that mean something only to the caller (not found,
    precondition failed) are his to catch before.
    """
    code = code_of(error)
    if code in _ACCESS:
        return AccessError(f"{what}: {_ACCESS[code]} ({code})")
    if isinstance(error, _NO_CREDENTIALS):
        return AccessError(f"{what}: {MISSING_CREDENTIALS}")
    if isinstance(error, STALE_CREDENTIALS):
        return AccessError(f"{what}: {no_renewal(error)}")
    if code in _WRONG_REGION:
        return AccessError(f"{what}: {_wrong_region(error)}")
    if is_throttled(error):
        return unavailable(f"{what}: throttled ({code or status_of(error)})")
    if is_passing(error):
        return unavailable(f"{what}: {brief(error)}")
    return AccessError(f"{what}: refused: {brief(error)}")


def no_renewal(error: Exception) -> str:
    """Return the message for `STALE_CREDENTIALS`."""
    return f"the AWS credentials cannot be renewed: {error}"


def _wrong_region(error: Exception) -> str:
    answer = answer_of(error)
    headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    region = headers.get("x-amz-bucket-region") or answer.get("Error", {}).get("Region")
    where = f"it is in region `{region}`" if region else "it is in another region"
    return f"{where}: set client.region or AWS_REGION ({code_of(error)})"


def brief(error: Exception) -> str:
    """Return the error in one short line: a server that is none of AWS may answer with a page."""
    if isinstance(error, boto.ClientError):
        message = error.response.get("Error", {}).get("Message", "")
        text = f"{code_of(error) or status_of(error)}: {message}".rstrip(": ")
    elif isinstance(error, boto.BotoCoreError):
        text = str(error)
    else:
        text = f"{type(error).__name__}: {error}"
    return shorten(text, _BRIEF_CHARS_MAX, placeholder=" …")
