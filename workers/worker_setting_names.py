"""The settings that the Spark side reads. Names only: executors know them, and not a value."""

from __future__ import annotations

from collections.abc import Mapping

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


def given_settings(
    plain: Mapping[str, str | None], aws: Mapping[str, str] | None
) -> dict[str, str]:
    """Return the settings of a call: by name, and those of the group `aws` by their name in it.

    None counts as not given. Errors: `TypeError` for a setting that there is not.
    """
    given = {**plain, **{f"aws.{name}": value for name, value in (aws or {}).items()}}
    settings = {name: value for name, value in given.items() if value is not None}
    unknown = set(settings) - SETTING_NAMES
    if unknown:
        raise TypeError(f"unknown settings {sorted(unknown)}")
    return settings
