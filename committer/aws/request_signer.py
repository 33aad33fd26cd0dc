"""Signs HTTP requests as AWS does (SigV4), for servers that are reached without an AWS client.

Credentials, role and region come from where every AWS tool finds them, as in `aws/client.py`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Any

from aiobotocore.session import AioSession
from botocore import exceptions as boto
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials

from committer.aws.client import AwsOptions
from committer.aws.client_errors import AWS_ERRORS, MISSING_CREDENTIALS, no_renewal
from committer.errors import AccessError, SettingsError

_CONTENT_HASH = "x-amz-content-sha256"


class RequestSigner:
    """Signs for one service of one region."""

    def __init__(self, session: AioSession, options: AwsOptions, *, region: str, name: str) -> None:
        self._session = session
        self._options = options
        self._region = region
        self._name = name

    @classmethod
    def open(cls, options: AwsOptions, *, name: str) -> RequestSigner:
        """Find the region; credentials are found with the first request. `name`: of the service in
        signatures. Errors: `SettingsError` for an unknown profile, or where no region is set.
        """
        try:
            session = AioSession(profile=options.profile or None)
            found: Any = session.get_config_variable("region")
        except boto.ProfileNotFound as error:
            raise SettingsError(
                f"{error}: name one of `~/.aws/config` (client.profile-name, AWS_PROFILE)"
            ) from error
        region = options.region or os.environ.get("AWS_REGION") or found
        if not region:
            raise SettingsError(
                "no AWS region to sign requests for: set rest.signing-region, client.region or"
                " AWS_REGION"
            )
        return cls(session, options, region=region, name=name)

    async def sign(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes
    ) -> Mapping[str, str]:
        """Return the headers that the request needs beside its own. Errors: `AccessError`."""
        digest = {_CONTENT_HASH: hashlib.sha256(body).hexdigest()}
        request = AWSRequest(method=method, url=url, data=body, headers={**headers, **digest})
        signer: Any = SigV4Auth(await self._credentials(), self._name, self._region)
        signer.add_auth(request)
        return {**digest, **{key: text for key, text in request.headers.items() if _is_new(key)}}

    async def _credentials(self) -> ReadOnlyCredentials:
        options = self._options
        if options.access_key_id:
            return ReadOnlyCredentials(
                options.access_key_id, options.secret_access_key, options.session_token or None
            )
        try:
            pending: Any = self._session.get_credentials()
            found = await pending
            if found is None:
                raise AccessError(f"to sign requests: {MISSING_CREDENTIALS}")
            frozen: ReadOnlyCredentials = await found.get_frozen_credentials()
        except AWS_ERRORS as error:
            raise AccessError(no_renewal(error)) from error
        return frozen


def _is_new(header: str) -> bool:
    return header.lower() in ("authorization", "x-amz-date", "x-amz-security-token")
