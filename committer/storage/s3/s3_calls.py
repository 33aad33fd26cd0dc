"""Sends calls to S3: its client, its limits, and which of its errors pass. `s3` interprets them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from committer.aws.client import AwsOptions, close_client, open_client
from committer.aws.client_errors import (
    AWS_ERRORS,
    is_passing,
    is_throttled,
    status_of,
    surely_not_applied,
)
from committer.ports.world import World
from committer.storage.repeated_calls import Backend, CallLimits, Failure, RepeatedCalls

if TYPE_CHECKING:
    from types_aiobotocore_s3 import S3Client


@dataclass(frozen=True, slots=True)
class S3Limits(CallLimits):
    """Sizes and budgets. The defaults suit AWS; tests make them small."""

    multipart_bytes_min: int = 32 * 1024 * 1024
    """Objects of this size and above are written in parts."""
    part_bytes: int = 16 * 1024 * 1024
    parts_at_once_max: int = 4
    deleted_max: int = 1_000


class S3Calls(RepeatedCalls["S3Client"]):
    """Calls of one S3 client. Errors: the last one of `AWS_ERRORS`."""

    def __init__(self, options: AwsOptions, world: World, limits: S3Limits) -> None:
        async def open_s3() -> S3Client:
            return await open_client("s3", options)

        backend: Backend[S3Client] = Backend(
            open_s3, close_client, AWS_ERRORS, _judge, options.connections_max
        )
        super().__init__(backend, world, limits)


def _judge(error: Exception) -> Failure:
    return Failure(
        is_passing=is_passing(error),
        is_slow_down=is_throttled(error) or status_of(error) in (409, 503),
        is_refusal=surely_not_applied(error),
    )
