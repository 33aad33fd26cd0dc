"""The settings of the Spark side and their environment variables. Names only: executors know them,
and not a value.
"""

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


def variable_of(setting: str) -> str:
    """The environment variable of a setting."""
    return "FRAZIL_" + setting.replace(".", "__").upper()
