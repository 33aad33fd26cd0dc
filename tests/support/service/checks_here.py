"""Checks of large requests for a service without processes: in the loop, at once."""

from __future__ import annotations

from committer.plan.batch.request_check import (
    CheckedRequest,
    Checker,
    Inflates,
    NeedsManifests,
    within,
)
from committer.request.request_format import EncodedRequest, read_request
from committer.service.checks.checks import Checks, Named


class ChecksHere(Checks):
    def __init__(self) -> None:
        """Start nothing: no other method of `Checks` is called."""

    async def close(self) -> None:
        """Nothing was started."""

    async def read(self, content: bytes, key: str, producer: str) -> EncodedRequest:
        return read_request(content, key=key)

    async def check(
        self,
        checker: Checker,
        sealed: EncodedRequest,
        producer: str,
        read: Named | None,
        inflated_bytes_max: int,
    ) -> CheckedRequest | NeedsManifests | Inflates:
        checked = checker.check(sealed, read)
        return within(checked, inflated_bytes_max)
