"""The settings that the Spark side reads. Names only: executors know them, and not a value."""

from __future__ import annotations

SETTING_NAMES = frozenset(
    {
        "home",
        "inbox",
        "catalog.name",
        "catalog.uri",
        "queue.url",
        "security.keys",
        "aws.region",
        "aws.profile",
        "aws.s3_endpoint_url",
        "aws.dynamodb_endpoint_url",
        "aws.s3_addressing_style",
    }
)
